"""Doubts about times: what never ends, and limits that make one another useless."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.graph.documents import task, warnings


def doubts(node: dict[str, Any], **rest: Any) -> list[str]:
    document = {"name": "timed", "nodes": [{"id": "n", **node}], **rest}
    return [f"{finding.pointer}: {finding.message}" for finding in warnings(document)]


def wait(spec: dict[str, Any], **rest: Any) -> list[str]:
    return doubts({"type": "WAIT", "spec": spec}, **rest)


def signal(spec: dict[str, Any], **rest: Any) -> list[str]:
    return doubts({"type": "WAIT_FOR_SIGNAL", "spec": {"signal": "go", **spec}}, **rest)


def work(retry: Any, timeout: Any = 1, **rest: Any) -> list[str]:
    return doubts(task("n", retry=retry, timeout=timeout), **rest)


def test_a_wait_for_one_moment_of_all_runs_is_told() -> None:
    (told,) = wait({"until": "2030-01-31T12:00:00Z"})
    assert told.startswith("/nodes/0/spec/until: every run waits for this same moment")
    assert wait({"until": "{{input.when}}"}) == []


def test_a_wait_for_no_time_is_told() -> None:
    assert wait({"duration": 0}) == ["/nodes/0/spec/duration: this waits for no time at all"]
    assert wait({"duration_seconds": "0"}) != []
    assert wait({"duration": "1s"}) == []


@pytest.mark.parametrize("spec", [{"duration": "2h"}, {"duration_seconds": 3600}])
def test_a_wait_that_outlasts_the_run_is_told(spec: dict[str, Any]) -> None:
    (told,) = wait(spec, max_duration="1h")
    assert "the run ends after max_duration (1h) in any case" in told
    assert wait(spec, max_duration="3h") == []
    assert wait(spec) == []


# scenario 262: a wait that nobody ends is told before a run waits for ever
def test_a_signal_that_nobody_bounds_is_told() -> None:
    assert signal({}) == ["/nodes/0: a run waits here for ever if the signal never comes"]
    assert signal({"timeout": 0}) != []
    assert signal({"timeout": "1h"}) == []
    assert signal({"timeout": "{{input.patience}}"}) == []
    assert signal({}, max_duration="1d") == []


def test_a_signal_awaited_longer_than_the_run_is_told() -> None:
    (told,) = signal({"timeout": "24h"}, max_duration="1h")
    assert told.startswith("/nodes/0/spec/timeout: this waits 1d, and the run ends")


def test_an_attempt_longer_than_the_run_is_told() -> None:
    (told,) = work(None, "2h", max_duration="90m")
    assert "an attempt may take 2h" in told
    assert "(1h30m)" in told
    assert work(None, "2h") == []
    assert work(None, 0, max_duration="90m") == []


def test_a_request_that_says_its_timeout_twice_is_told() -> None:
    spec = {"url": "https://a.test", "timeout": 3}
    (told,) = doubts({"type": "HTTP", "spec": spec, "timeout": 5})
    assert told.startswith("/nodes/0/spec/timeout: the node has a timeout too")
    assert doubts({"type": "HTTP", "spec": spec}) == []
    (told,) = doubts({"type": "HTTP", "spec": spec}, max_duration=2)
    assert told.startswith("/nodes/0/spec/timeout: an attempt may take 3s")


def test_options_of_a_single_attempt_are_told() -> None:
    (told,) = work({"attempts": 1, "initial": "1s", "retry_on": ["x"]})
    assert "with one attempt nothing is repeated: initial, retry_on never counts" in told
    assert work({"attempts": 1}) == []


@pytest.mark.rule("D-35")
def test_a_kind_that_is_repeated_and_never_repeated_is_told() -> None:
    (told,) = work({"attempts": 2, "retry_on": ["a", "b"], "never_on": ["b"]})
    assert told == "/nodes/0/retry/never_on: b is in retry_on too, and never_on wins"


def test_a_factor_that_would_shrink_is_told() -> None:
    assert "a factor below 1 counts as 1" in work({"attempts": 2, "factor": 0.5})[0]


@pytest.mark.parametrize(
    ("retry", "part"),
    [
        ({"attempts": 5, "initial": 10, "max_elapsed": "25s"}, "only 2 of 5 begin"),
        ({"attempts": 3, "initial": 30, "max_elapsed": 20}, "only the first of 3 begin"),
        ({"attempts": 2, "initial": 0, "max_elapsed": 60}, ""),
        ({"attempts": 3, "initial": 10, "max_elapsed": 30}, ""),
    ],
)
def test_attempts_that_never_begin_are_told(retry: dict[str, Any], part: str) -> None:
    told = work(retry)
    assert len(told) == (1 if part else 0)
    assert all(part in one and "max_elapsed" in one for one in told)


def test_an_attempt_that_uses_up_the_time_of_all_is_told() -> None:
    (told,) = work({"attempts": 3, "max_elapsed": "30s"}, "60s")
    assert "one attempt may take 1m: one that times out is not repeated" in told


def test_delays_longer_than_the_run_are_told() -> None:
    retry = {"attempts": 10, "initial": "30m", "max_delay": "1h"}
    (told,) = work(retry, max_duration="5h")
    assert told.startswith("/nodes/0/retry: the delays between 10 attempts come to 8.5h") or (
        "come to" in told
    )
    assert work(retry, max_duration="2d") == []


def test_a_million_attempts_are_added_up_in_no_time() -> None:
    assert work({"attempts": 10**9, "initial": 0}) == []
