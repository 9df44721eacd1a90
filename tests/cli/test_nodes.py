"""The fold from records of a history to nodes as people see them, in words and numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perdure.cli.failed import failed_run
from perdure.cli.node_view import NodeView
from perdure.cli.nodes import NodeBook
from perdure.cli.output import failure_json, shortened, took
from perdure.cli.reasons import reason
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


def test_only_what_was_under_way_is_begun_again_when_another_process_goes_on() -> None:
    due = int((at(9) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
    asked = {"definition": "pay", "id": "1"}
    book, _ = folded(
        CREATED, STARTED,
        record("CreateTask", 0, "b", status="pending"), record("StartChild", 0, "b", **asked),
        record("CreateTask", 0, "c", status="pending"), record("DispatchTask", 0, "c", attempt=1),
        record("RetryTask", 1, "c", attempt=1, failure=LUCKLESS, not_before=due),
        record("Claimed", 5), record("CompleteTask", 7, attempt=1),
        record("CompleteTask", 7, "b", attempt=1),
    )  # fmt: skip
    assert {id: (view.lost, view.seconds) for id, view in book.nodes.items()} == {
        "a": (1, 2.0), "b": (0, 7.0), "c": (0, None),
    }  # fmt: skip


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


def since_epoch(seconds: float) -> int:
    return int(at(seconds).timestamp() * 1_000_000)


def waiting(**rest: Any) -> dict[str, Any]:
    return record("CreateTask", 0, status="waiting", **rest)


def test_a_wait_says_for_what_until_when_and_what_came() -> None:
    wait = waiting(awaited_signal="approved", wake_at=since_epoch(60))
    book, told = folded(wait, record("ResolveWait", 5, status="completed", output={"by": "ann"}))
    when = at(60).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    assert told == [
        f"waits for signal approved until {when}", "got signal approved (after 5.00 s)",
    ]  # fmt: skip
    view = book.nodes["a"]
    assert (view.status, view.output, view.attempt, view.seconds) == (
        "completed", {"by": "ann"}, 0, 5,
    )  # fmt: skip


def test_a_wait_for_a_signal_tells_the_command_that_sends_it() -> None:
    book = NodeBook(lambda name: f"perdure signal order/1 {name}")
    (change,) = book.take(waiting(awaited_signal="approved"))
    assert change.text == "waits for signal approved (perdure signal order/1 approved)"


def test_a_wait_for_a_time_ends_completed_and_one_that_nobody_answered_failed() -> None:
    timed_out = {"kind": "workflow.timeout", "message": "timed out waiting for signal approved"}
    _, told = folded(
        waiting(wake_at=since_epoch(0)),
        record("ResolveWait", 7200, status="completed", output={"woke_at": "x"}),
        record("CreateTask", 0, "b", status="waiting", awaited_signal="approved"),
        record("ResolveWait", 9, "b", status="failed", failure=timed_out),
    )
    assert told[1] == "completed (after 2 h 00 m)"
    assert told[3] == "failed: workflow.timeout: timed out waiting for signal approved"


def test_a_time_that_no_calendar_has_is_the_last_one_of_all() -> None:
    book, told = folded(waiting(wake_at=2**63 - 1))
    assert told == ["waits until 9999-12-31 23:59:59"]
    assert book.nodes["a"].wake_at is not None


def test_a_signal_that_comes_early_is_kept_until_a_node_takes_it() -> None:
    kept = {"do": "BufferSignal", "time": at(1), "seq": 1, "signal": "m1", "name": "approved"}
    book, told = folded(kept)
    assert told == ["signal approved came; it is kept until a node waits"]
    assert book.kept == {"m1": ("approved", at(1))}
    book.take(record("ConsumeSignal", 2, signal="m1"))
    assert book.kept == {}


@pytest.mark.parametrize("status", ["failed", "canceled"])
def test_nodes_that_a_cancel_ends_say_so(status: str) -> None:
    failure = {"kind": "workflow.canceled", "message": "not wanted"}
    cancel = {"do": "CancelTasks", "time": at(9), "seq": 2, "nodes": ["a", "b"], "status": status}
    book, told = folded(
        CREATED, STARTED, record("CreateTask", 0, "b", status="waiting"),
        {**cancel, "failure": failure},
    )  # fmt: skip
    assert told[-2:] == [f"{status}: workflow.canceled: not wanted"] * 2
    assert {view.status for view in book.nodes.values()} == {status}
    assert book.having("pending", "waiting") == []


def test_a_retried_run_forgets_what_it_does_again() -> None:
    failed = record("FailTask", 1, attempt=1, failure=LUCKLESS)
    reopened = {"do": "ReopenRun", "time": at(2), "seq": 3, "reset": ("a",), "deadline": None}
    book, told = folded(CREATED, STARTED, failed, reopened)
    assert (book.nodes, told[-1]) == ({}, "goes on by a retry; begins again: a")


def test_a_pause_and_a_refused_message_are_about_the_run() -> None:
    book = NodeBook()
    (paused,) = book.take({"do": "SetPaused", "time": at(3), "seq": 1, "paused": True})
    assert (paused.node, paused.text, book.paused) == ("", "paused: nothing new is started", at(3))
    (unpaused,) = book.take({"do": "SetPaused", "time": at(4), "seq": 2})
    assert (unpaused.text, book.paused) == ("unpaused", None)
    (refused,) = book.take({"do": "Refused", "time": at(5), "seq": 3, "error": "no such node"})
    assert refused.text == "a message was refused: no such node"


def test_records_of_nodes_that_were_never_seen_are_taken_all_the_same() -> None:
    book, told = folded(record("DispatchTask", 0, "late", attempt=2))
    assert (book.nodes["late"].attempt, told) == (2, ["started (attempt 2)"])


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
     (7620, "2 h 07 m"), (86_400 * 9 + 3600 * 4, "9 d 04 h")],
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


def test_what_a_terminal_would_obey_is_shown_instead() -> None:
    assert reason("gone", "\x1b[2Jall \x9b31mgone\nhere") == "gone: \\x1b[2Jall \\x9b31mgone\nhere"
    assert reason("\x07", "") == "\\x07"
    assert shortened("a\x1b]0;title\x07\tb") == "a\\x1b]0;title\\x07 b"
    assert shortened({"é": "\x7f"}) == '{"é": "\\x7f"}'
