"""The fold from records of a history to nodes as people see them, in words and numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perdure.cli.failed import failed_run
from perdure.cli.nodes import NodeBook, NodeView, reason
from perdure.cli.output import failure_json, shortened, took
from perdure.model.errors import RunFailed

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def record(do: str, seconds: float, node: str = "a", **rest: Any) -> dict[str, Any]:
    return {"do": do, "time": at(seconds), "seq": 1, "node": node, "task": "t", **rest}


def folded(*records: dict[str, Any]) -> tuple[NodeBook, list[str]]:
    book = NodeBook()
    return book, [change.text for one in records for change in book.take(one)]


CREATED = record("CreateTask", 0, status="pending", input={"x": 1})
STARTED = record("DispatchTask", 0, attempt=1)
LUCKLESS = {"kind": "unlucky", "message": "no luck"}


def test_a_node_that_is_started_and_completes_has_its_output_and_length() -> None:
    book, told = folded(CREATED, STARTED, record("CompleteTask", 1.5, attempt=1, output=[1]))
    view = book.nodes["a"]
    assert (view.status, view.attempt, view.seconds, view.output) == ("completed", 1, 1.5, [1])
    assert told == ["started (attempt 1)", "completed (attempt 1, 1.50 s)"]


@pytest.mark.rule("D-2")
def test_attempts_are_told_from_one_and_a_retry_says_when() -> None:
    due = int((at(4) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
    retried = record("RetryTask", 1, attempt=1, failure=LUCKLESS, not_before=due)
    book, told = folded(CREATED, STARTED, retried)
    assert told[-1] == "attempt 1 failed: unlucky: no luck; attempt 2 in 3.00 s"
    view = book.nodes["a"]
    assert (view.status, view.attempt, view.since) == ("pending", 2, at(4))


def test_a_node_that_fails_for_good_says_why() -> None:
    book, told = folded(CREATED, STARTED, record("FailTask", 1, attempt=3, failure=LUCKLESS))
    assert told[-1] == "failed (attempt 3): unlucky: no luck"
    assert book.having("failed")[0].failure == LUCKLESS


def test_nodes_that_never_ran_say_what_became_of_them() -> None:
    _, told = folded(
        record("CreateTask", 0, "a", status="completed", branches=("b", "c")),
        record("CreateTask", 0, "b", status="completed", branches=()),
        record("CreateTask", 0, "c", status="skipped"),
        record("CreateTask", 0, "d", status="failed", failure={"kind": "input", "message": "the"}),
    )
    assert told == ["chose b, c", "chose nothing", "skipped", "failed: input: the"]


def test_what_was_under_way_when_a_process_died_is_counted_and_begins_anew() -> None:
    done = record("CompleteTask", 1, "b", attempt=1)
    book, _ = folded(
        CREATED, STARTED,
        record("CreateTask", 0, "b", status="pending"), record("DispatchTask", 0, "b", attempt=1),
        done, record("Claimed", 5, worker="w"),
    )  # fmt: skip
    assert (book.nodes["a"].lost, book.nodes["a"].since) == (1, at(5))
    assert (book.nodes["b"].lost, book.nodes["b"].seconds) == (0, 1)


def test_records_of_the_run_itself_change_no_node() -> None:
    book, told = folded(record("OpenRun", 0), record("FinishRun", 1, status="completed"))
    assert (book.nodes, told) == ({}, [])


@pytest.mark.parametrize(
    ("kind", "message", "text"),
    [
        ("unlucky", "no luck", "unlucky: no luck"),
        ("unlucky", "unlucky day", "unlucky day"),
        ("input", "the input cannot be made", "the input cannot be made"),
        ("unlucky", "", "unlucky"),
    ],
)
def test_a_reason_names_its_kind_once(kind: str, message: str, text: str) -> None:
    assert reason(kind, message) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.314, "0.31 s"), (-1, "0.00 s"), (9.99, "9.99 s"), (12.4, "12 s"), (185, "3 m 05 s"),
     (7620, "2 h 07 m")],
)  # fmt: skip
def test_lengths_of_time_are_short_to_read(seconds: float, text: str) -> None:
    assert took(seconds) == text


def test_values_are_shortened_to_one_line() -> None:
    assert shortened({"a": "b\nc"}) == '{"a": "b\\nc"}'
    assert shortened("one\n two") == "one two"
    assert shortened("x" * 200, 10) == "x" * 9 + "…"


def test_a_failure_for_programs_has_kind_message_and_details() -> None:
    failure = RunFailed("no luck", kind="unlucky", details={"n": 1})
    assert failure_json(failure) == {"kind": "unlucky", "message": "no luck", "details": {"n": 1}}


def test_what_a_failed_node_was_answered_is_shown_beside_the_reason() -> None:
    book = NodeBook()
    answer = {"status": 404, "body": "no such city"}
    failure = {"kind": "http-status", "message": "unexpected status 404", "details": answer}
    book.nodes["find"] = NodeView("find", "failed", attempt=1, failure=failure)
    assert failed_run(
        "order/7", "failed", RunFailed("x", kind="http-status"), book
    ).splitlines() == [
        "perdure: order/7 failed",
        "  node find, attempt 1: http-status: unexpected status 404",
        '    {"status": 404, "body": "no such city"}',
    ]
