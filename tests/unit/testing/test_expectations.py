"""Expectations: each difference is told in words, and so is how it went instead."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.model.errors import InvalidRequest
from perdure.testing import coverage, rehearse
from perdure.testing.story import clock
from tests.unit.testing.documents import LARGE, ORDER, SMALL, chain, task

SHIPPED = rehearse(ORDER, SMALL)
EXPIRED = rehearse(ORDER, LARGE)


def test_what_is_as_expected_says_nothing() -> None:
    SHIPPED.check(
        status="completed",
        output={"tracking": "T1"},
        route=["fetch", "route", "ship"],
        ran=["ship"],
        skipped=["review"],
        not_ran=["review"],
        attempts={"fetch": 1, "review": 0},
        duration=0,
    )
    EXPIRED.check(failure={"kind": "workflow.timeout", "message": "reviewed"}, duration="3d")
    EXPIRED.check(failure="timed out waiting")


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"status": "failed"}, ["status: expected failed, got completed"]),
        (
            {"route": ["fetch", "route", "review"]},
            [
                "route: expected fetch → route → [review]",
                "            got fetch → route → [ship]",
            ],
        ),
        (
            {"route": ["fetch", "route"]},
            ["route: expected fetch → route → [end]", "            got fetch → route → [ship]"],
        ),
        ({"ran": ["review"]}, ["ran: review did not run, it was skipped"]),
        ({"not_ran": ["ship"]}, ["not_ran: ship did run (completed)"]),
        ({"skipped": ["ship"]}, ["skipped: ship was not skipped, it was completed"]),
        ({"attempts": {"fetch": 2}}, ["attempts: expected 2 of fetch, got 1"]),
        (
            {"output": {"tracking": 7, "more": 1}},
            ['output/tracking: expected 7, got "T1"', "output/more: expected 1, got nothing"],
        ),
        ({"output": {}}, ['output/tracking: expected nothing, got "T1"']),
        ({"failure": {"kind": "x"}}, ["failure: expected kind x, got completed"]),
        ({"duration": "5m"}, ["duration: expected 5m, got 0s"]),
    ],
)
def test_a_difference_is_told(expected: dict[str, Any], said: list[str]) -> None:
    assert SHIPPED.differences(expected) == said


def test_a_check_raises_with_the_differences_and_the_story() -> None:
    with pytest.raises(AssertionError) as caught:
        EXPIRED.check(status="completed")
    expired = 'timed out waiting for signal "reviewed"'
    assert EXPIRED.failure is not None
    ended = f"failed (workflow.timeout: {EXPIRED.failure['message']})"
    assert str(caught.value).splitlines() == [
        "order was rehearsed and differs:",
        f"  status: expected completed, got {ended}",
        "",
        "AT   NODE    STATUS     ATTEMPT  WHAT",
        '+0s  fetch   completed  1        {"total": 900}',
        "+0s  route   completed  -        chose review",
        f"+0s  review  failed     -        workflow.timeout: {expired} (took 3d)",
        f"{ended} after 3d",
    ]


def test_what_the_mocks_expect_is_checked() -> None:
    rehearse(ORDER, {**SMALL, "expect": {"ran": ["ship"]}}).check()
    with pytest.raises(AssertionError, match="ran: review did not run"):
        rehearse(ORDER, {**SMALL, "expect": {"ran": ["review"]}}).check()


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"statos": 1}, "expect: unknown key 'statos'; did you mean \"status\"?"),
        ({"status": "done"}, "expect: status 'done' is none; use one of: completed, failed"),
        ({"ran": ["shipp"]}, "expect: ran: there is no node 'shipp'; did you mean \"ship\"?"),
        ({"route": "ship"}, "expect: route must be a list of node ids, not 'ship'"),
        ({"attempts": 2}, 'expect: attempts: write {"charge": 2}'),
        ({"failure": {"text": "x"}}, "expect: failure: write"),
        ({"duration": "long"}, "expect: duration 'long' is not a duration"),
    ],
)
def test_an_expectation_that_means_nothing_is_refused(expected: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        SHIPPED.differences(expected)
    assert said in str(caught.value)


def test_true_is_not_one_and_long_differences_are_cut() -> None:
    graph = chain(task("a"), output="{{tasks.a.output}}")
    rehearsal = rehearse(graph, {"steps": {"a": {"result": [1, "x" * 200]}}})
    first, second = rehearsal.differences({"output": [True, "y"]})
    assert first == "output/0: expected true, got 1"
    assert second.endswith("…")
    assert len(second) < 100
    many = rehearse(graph, {"steps": {"a": {"result": list(range(50))}}})
    assert many.differences({"output": [0] * 50})[-1] == "output: and 41 more differences"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.25, "0.25s"), (90, "1m 30s"), (86_400, "1d"), (259_205, "3d 5s")],
)
def test_virtual_time_is_told_briefly(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_coverage_tells_what_no_rehearsal_took() -> None:
    alone = coverage([SHIPPED])
    assert (alone.edges, alone.percent) == (4, 50.0)
    assert alone.missed == (("route", "review"), ("review", "ship"))
    assert alone.never_ran == ("review",)
    assert str(alone).splitlines() == [
        "2 of 4 edges taken (50 %)",
        "  never taken: route → review",
        "  never taken: review → ship",
        "  never ran: review",
    ]
    signals = [{"name": "reviewed"}]
    together = coverage([SHIPPED, rehearse(ORDER, {**LARGE, "signals": signals})])
    assert (together.percent, together.missed) == (100.0, ())


def test_coverage_is_of_one_document() -> None:
    other = rehearse(chain(task("a")), default=1)
    for rehearsals in ([], [SHIPPED, other]):
        with pytest.raises(InvalidRequest, match="rehearsals of the same document"):
            coverage(rehearsals)
    assert coverage([other]).percent == 100.0
