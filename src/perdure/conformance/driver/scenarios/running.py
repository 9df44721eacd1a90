"""Running: results, steps, retries, failures, values."""

from __future__ import annotations

from typing import Any

from perdure.conformance.driver.acts import Open, Until
from perdure.conformance.driver.programs.running import (
    kit_declining,
    kit_hopeless,
    kit_immediately,
    kit_mapped,
    kit_out_of_time,
    kit_policy_of_the_call,
    kit_raising,
    kit_retried,
    kit_same_key,
    kit_steps,
    kit_together,
    kit_values,
)
from perdure.conformance.driver.programs.steps import Declined
from perdure.conformance.driver.scenario import Scenario
from perdure.model.errors import RunFailed

_TRIES = ("attempt 1", "attempt 2", "attempt 3")

#: Values that are easily taken for one another, or spoiled on the way.
_VALUES: dict[str, Any] = {
    "nothing is a value": None,
    "zero is not nothing": 0,
    "false is not nothing": False,
    "an empty text is not nothing": "",
    "an empty list is not nothing": [],
    "an object like an envelope is itself": {"v": None},
    "text of any language": 'Zoë 💳 \\ " \n \u2028',
    "numbers keep their kind": [1, 1.5, -(2**62), 1e-300],
    "nested values": {"a": [{"b": [None, {"c": ["d"]}]}]},
    "a large value": ["x" * 100] * 1000,
}

RUNNING: tuple[Scenario, ...] = (
    Scenario(
        theme="start",
        name="a run executes its steps in order and gives its result",
        runs=kit_steps,
        input=["one", "plain two", "three"],
        output=["one", "plain two", "three"],
        done=["one", "plain two", "three"],
    ),
    Scenario(
        theme="start",
        name="a run without steps ends at once",
        runs=kit_steps,
        input=[],
        output=[],
        done=[],
    ),
    Scenario(
        theme="start",
        name="a delayed run begins when it is due",
        runs=kit_steps,
        input=["late"],
        options={"delay": 0.05},
        output=["late"],
        done=["late"],
    ),
    Scenario(
        theme="steps",
        name="steps called together are under way together and answer in order",
        runs=kit_together,
        input=["a", "b"],
        script=[Until("began a"), Until("began b"), Open("b"), Until("ended b"), Open("a")],
        output=["a", "b"],
        done=["began a", "began b", "ended b", "ended a"],
    ),
    Scenario(
        theme="steps",
        name="a map over many items gives every result in its place",
        runs=kit_mapped,
        input=20,
        output=[1] * 20,
    ),
    Scenario(
        theme="steps",
        name="a step over its time is told as timed out",
        runs=kit_out_of_time,
        output="timed out",
        done=["slow"],
    ),
    Scenario(
        theme="retries",
        name="a step that fails is tried again until it does not",
        runs=kit_retried,
        input=2,
        output="attempt 3",
        done=_TRIES,
    ),
    Scenario(
        theme="retries",
        name="a step that fails too often has failed with its attempt",
        runs=kit_retried,
        input=9,
        output="ValueError: shaky (kit-shaky, attempt 4)",
        done=[*_TRIES, "attempt 4"],
    ),
    Scenario(
        theme="retries",
        name="the idempotency key is one over all attempts",
        runs=kit_same_key,
        input=2,
        output=None,
    ),
    Scenario(
        theme="retries",
        name="a permanent failure is not tried again and keeps its kind",
        runs=kit_hopeless,
        input="permanent",
        output="ValueError",
        done=["permanent"],
    ),
    Scenario(
        theme="retries",
        name="a failure that the policy names is not tried again",
        runs=kit_hopeless,
        input="never",
        output="KeyError",
        done=["never"],
    ),
    Scenario(
        theme="retries",
        name="a call has the policy that it was made with",
        runs=kit_policy_of_the_call,
        output="attempt 1",
        done=["attempt 1"],
    ),
    Scenario(
        theme="retries",
        name="attempts without a delay",
        runs=kit_immediately,
        output=3,
        done=_TRIES,
        needs=("immediate_retry",),
    ),
    Scenario(
        theme="errors",
        name="a failure with a class of its own is caught by it in the workflow",
        runs=kit_declining,
        input=True,
        output="no funds {'code': 51}",
        done=["declined"],
    ),
    Scenario(
        theme="errors",
        name="and by whoever waits for the run",
        runs=kit_declining,
        input=False,
        status="failed",
        failure=(Declined, "kit-declined", "no funds"),
        done=["declined"],
    ),
    Scenario(
        theme="errors",
        name="any other failure of the code is the run's with its kind",
        runs=kit_raising,
        status="failed",
        failure=(RunFailed, "LookupError", "nothing there"),
    ),
    *(
        Scenario(theme="payloads", name=name, runs=kit_values, input=value, output=value)
        for name, value in _VALUES.items()
        if value is not None
    ),
)
