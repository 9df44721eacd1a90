"""Lasting: engines that end and are killed, what is undone, and runs that start runs."""

from __future__ import annotations

from typing import Any

from perdure.conformance.driver.acts import (
    Act,
    Cancel,
    Kill,
    Open,
    Other,
    Pass,
    Restart,
    Send,
    Until,
)
from perdure.conformance.driver.programs.lasting import (
    kit_counted,
    kit_held_once,
    kit_parent,
    kit_spawning,
    kit_undone,
    kit_waiting_parent,
)
from perdure.conformance.driver.programs.steps import Declined
from perdure.conformance.driver.programs.telling import (
    Approve,
    decision,
    kit_asked,
    kit_cleaning,
    kit_messages,
    kit_slept,
    numbers,
)
from perdure.conformance.driver.scenario import Scenario
from perdure.model.errors import Canceled

_HELD = ["before", "began gate", "ended gate", "after"]


def _recovered(ends: Act, how: str) -> tuple[Scenario, ...]:
    return (
        Scenario(
            theme="recovery",
            name=f"a wait goes on after the engine {how}",
            runs=kit_asked,
            script=[Until("asked"), Pass(0.02), ends, Send(decision, Approve("ann"))],
            output="approved by ann",
            done=["asked"],
        ),
        Scenario(
            theme="recovery",
            name=f"a sleep goes on after the engine {how}",
            runs=kit_slept,
            input=0.2,
            script=[Pass(0.02), ends],
            output=True,
        ),
        Scenario(
            theme="recovery",
            name=f"messages that were taken are not taken again after the engine {how}",
            runs=kit_messages,
            input=3,
            script=[Send(numbers, 1), Until("ready"), Send(numbers, 2), ends, Send(numbers, 3)],
            output=[1, 2, 3],
            done=["ready"],
        ),
        Scenario(
            theme="recovery",
            name=f"a cancel reaches a run that waits after the engine {how}",
            runs=kit_cleaning,
            script=[Until("begun"), ends, Cancel("enough")],
            status="canceled",
            failure=(Canceled, Canceled.kind, "enough"),
            done=["begun", "cleaned"],
        ),
    )


def _of_child(end: Any, run: str) -> bool:
    return bool(end == f"{run}-child")


LASTING: tuple[Scenario, ...] = (
    *_recovered(Restart(), "was closed"),
    *_recovered(Kill(), "was killed"),
    Scenario(
        theme="fencing",
        name="a step under way when the engine is killed is done again and what was before is not",
        runs=kit_held_once,
        input="gate",
        script=[Until("began gate"), Kill(), Open("gate")],
        output="gate",
        done=_HELD,
        loosely=True,
    ),
    Scenario(
        theme="saga",
        name="what was done is undone last first when the code fails",
        runs=kit_undone,
        input=True,
        status="failed",
        failure=(Declined, "kit-declined", "no funds"),
        done=["charged", "reserved", "declined", "undone reserved", "undone charged"],
    ),
    Scenario(
        theme="saga",
        name="and nothing is undone when it does not",
        runs=kit_undone,
        input=False,
        output="done",
        done=["charged", "reserved"],
    ),
    Scenario(
        theme="start",
        name="a run begins anew with the input that it gives itself",
        runs=kit_counted,
        input=3,
        output=0,
        done=["count 3", "count 2", "count 1", "count 0"],
    ),
    Scenario(
        theme="children",
        name="a child's output is its parent's",
        runs=kit_parent,
        input=False,
        output="child",
        needs=("children",),
    ),
    Scenario(
        theme="children",
        name="a child's failure is caught by its class",
        runs=kit_parent,
        input=True,
        output="no funds",
        needs=("children",),
    ),
    Scenario(
        theme="children",
        name="a canceled parent cancels the child that it created",
        runs=kit_waiting_parent,
        input="{id}-child",
        script=[Until("asked", of="{id}-child"), Cancel("enough")],
        status="canceled",
        failure=(Canceled, Canceled.kind, "enough"),
        after=[Other(kit_asked, "{id}-child", status="canceled")],
        needs=("children",),
    ),
    Scenario(
        theme="children",
        name="a spawned run is one however often it is asked for and outlives its parent",
        runs=kit_spawning,
        input="{id}-child",
        holds=_of_child,
        after=[
            Other(kit_asked, "{id}-child", status="running"),
            Other(kit_asked, "{id}-child", send=Send(decision, Approve("x")), status="completed"),
        ],
        needs=("children",),
    ),
)
