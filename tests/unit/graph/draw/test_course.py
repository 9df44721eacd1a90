"""Course: from the records of a run to what a drawing shows of it."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.graph.draw.course import course_of
from tests.unit.graph.draw.pictures import FAILURE, HISTORY, record


def state(*history: dict[str, Any]) -> tuple[str, int]:
    mark = course_of(history).marks["a"]
    return mark.state, mark.attempt


CREATED = record("CreateTask", "a", status="pending")
BEGUN = record("DispatchTask", "a", attempt=1)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([CREATED], ("running", 0)),
        ([CREATED, BEGUN], ("running", 1)),
        ([CREATED, BEGUN, record("CompleteTask", "a", attempt=1)], ("completed", 1)),
        ([CREATED, BEGUN, record("FailTask", "a", attempt=1, failure=FAILURE)], ("failed", 1)),
        ([CREATED, BEGUN, record("RetryTask", "a", attempt=1, failure=FAILURE)], ("retrying", 2)),
        ([record("CreateTask", "a", status="skipped")], ("skipped", 0)),
        ([record("CreateTask", "a", status="waiting")], ("waiting", 0)),
        ([CREATED, record("CancelTasks", nodes=["a"], failure=FAILURE)], ("failed", 0)),
        (
            [CREATED, record("CancelTasks", nodes=["a"], status="canceled", failure=FAILURE)],
            ("canceled", 0),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else f"after {value[-1]['do']}",
)
def test_a_node_is_shown_as_its_last_record_left_it(
    records: list[dict[str, Any]], expected: tuple[str, int]
) -> None:
    assert state(*records) == expected


def test_an_edge_is_taken_when_its_source_completed_and_chose_it() -> None:
    course = course_of(HISTORY)
    assert course.passage("begin", "route") == "taken"
    assert course.passage("route", "later") == "taken"
    assert course.passage("route", "ask") == "left"
    assert course.passage("ask", "end") == "left"
    assert course.passage("later", "end") == "taken"
    assert course.passage("end", "more") == "open"
    assert course.passage("unknown", "more") == "open"


def test_a_retry_of_the_run_forgets_what_it_reset() -> None:
    course = course_of(
        [
            *HISTORY,
            record("FailTask", "end", attempt=1, failure=FAILURE),
            record("FinishRun", status="failed"),
        ]
    )
    assert (course.run, course.status) == ("drawn/d-1", "failed")
    course.take(record("ReopenRun", reset=["end"]))
    assert course.status == "running"
    assert "end" not in course.marks


def test_a_failure_and_what_is_awaited_are_remarked() -> None:
    waiting = record("CreateTask", "a", status="waiting", awaited_signal="yes")
    assert course_of([waiting]).marks["a"].remark == "for signal yes"
    failed = course_of([CREATED, record("FailTask", "a", attempt=2, failure=FAILURE)]).marks["a"]
    assert failed.remark == f"refused: {FAILURE['message']}"
    answered = course_of([waiting, record("ResolveWait", "a", status="completed")]).marks["a"]
    assert (answered.state, answered.remark) == ("completed", "")


def test_a_paused_run_is_shown_as_paused() -> None:
    assert course_of([record("SetPaused", paused=True)]).status == "paused"
    assert course_of([record("SetPaused", paused=True), record("SetPaused")]).status == "running"
