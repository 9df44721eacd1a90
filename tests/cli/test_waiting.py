"""Why a run does not go on, worked out from its records and its row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from perdure.cli.holding import holder
from perdure.cli.node_view import NodeView
from perdure.cli.nodes import NodeBook
from perdure.cli.waiting import Cause, Standing, causes, next_due
from perdure.stores.answers import Mail, RunRow
from perdure.stores.rows import NEVER

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
LUCKLESS = {"kind": "unlucky", "message": "no luck"}


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def stored(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000)


def row(**rest: Any) -> RunRow:
    made = RunRow(
        b"k", "order", "1", "v1", "hash", "running", stored(at(-600)), "w1", 1, NEVER, 1, 0
    )
    return msgspec.structs.replace(made, **rest)


def book(*views: NodeView) -> NodeBook:
    made = NodeBook()
    made.nodes = {view.node: view for view in views}
    return made


def found(row: RunRow, book: NodeBook, *mail: Mail, **rest: Any) -> list[Cause]:
    standing = Standing(row, book, mail, **rest)
    return causes(standing, NOW, lambda *words: " ".join(["perdure", *words]))


def message(n: int, kind: str, name: str = "", id: str = "m") -> Mail:
    return Mail(n, f"{id}{n}", kind, name)


def test_a_node_that_waits_for_a_signal_says_how_it_is_sent() -> None:
    view = NodeView("review", "waiting", 0, at(-90), signal="approved", wake_at=at(3600))
    (cause,) = found(row(owner=None), book(view))
    when = at(3600).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    assert (
        cause.text == f"waits for signal approved, for 1 m 30 s; gives up at {when} (in 1 h 00 m)"
    )
    assert (cause.kind, cause.node, cause.advice) == (
        "signal", "review", "perdure signal order/1 approved",
    )  # fmt: skip
    assert (cause.since, cause.until) == (at(-90), at(3600))


def test_a_signal_that_is_sent_and_not_read_need_not_be_sent_again() -> None:
    view = NodeView("review", "waiting", 0, at(-90), signal="approved")
    first, unread = found(row(), book(view), message(1, "signal", "approved"))
    assert (first.text, first.advice) == ("waits for signal approved, for 1 m 30 s", "")
    assert unread.text == "1 message sent to it is not read (signal approved)"
    (first, _) = found(row(), book(view), message(1, "signal", "other"))
    assert first.advice == "perdure signal order/1 approved"


def test_who_is_due_does_not_only_wait() -> None:
    waits = book(NodeView("review", "waiting", 0, at(-90), signal="approved"))
    assert holder(row(owner=None), waits, None) == "held by no worker: it only waits"
    assert holder(row(owner=None, ready_at=0), waits, None) == "held by no worker"


def test_a_node_that_waits_for_a_time_says_which() -> None:
    (cause,) = found(row(), book(NodeView("night", "waiting", 0, at(-9), wake_at=at(30))))
    assert (cause.kind, cause.advice) == ("time", "")
    assert cause.text.startswith("waits until 2026-01-31 ")
    assert cause.text.endswith(" (in 30 s)")


def test_a_further_attempt_says_when_and_what_the_last_one_came_to() -> None:
    (cause,) = found(row(), book(NodeView("charge", "pending", 3, at(12), failure=LUCKLESS)))
    assert cause.text == "attempt 3 is due in 12 s, since attempt 2 failed: unlucky: no luck"
    assert (cause.kind, cause.until) == ("retry", at(12))


def test_an_attempt_under_way_says_since_when_and_how_often_it_was_lost() -> None:
    (cause,) = found(row(), book(NodeView("ship", "pending", 1, at(-12), lost=2)))
    assert cause.text == "attempt 1 is under way for 12 s; 2 time(s) its process died at it"
    assert cause.kind == "attempt"


def test_a_run_that_is_due_and_that_nobody_takes_needs_a_worker() -> None:
    view = NodeView("ship", "pending", 1, at(-12))
    attempt, worker = found(row(owner=None, ready_at=stored(at(-5))), book(view))
    assert attempt.text == "attempt 1 waits for a worker"
    assert worker.text == "it is due, for 5.00 s, and no worker has taken it"
    assert (worker.kind, worker.since) == ("worker", at(-5))
    assert worker.advice.startswith("start one that has order: perdure worker ")


def test_a_stalled_run_says_why_and_a_paused_one_since_when() -> None:
    made = book(NodeView("ship", "pending", 1, at(-12)))
    made.paused = at(-60)
    stalled, paused, _ = found(row(owner=None, stalled="step 'ship' is gone", ready_at=0), made)
    assert stalled.text == "it cannot go on: step 'ship' is gone"
    assert stalled.advice == "mend that, then: perdure unpause order/1"
    assert paused.text == "it is paused, for 1 m 00 s"
    assert paused.advice == "perdure unpause order/1"


def test_how_many_attempts_there_are_is_said_where_it_is_known() -> None:
    due = book(NodeView("charge", "pending", 3, at(12), failure=LUCKLESS))
    (cause,) = found(row(), due, attempts={"charge": 5, "other": 7})
    assert cause.text.startswith("attempt 3 of 5 is due in 12 s, since attempt 2 failed: unlucky")
    now = book(NodeView("charge", "pending", 3, at(-12), failure=LUCKLESS))
    (cause,) = found(row(), now, attempts={"charge": 5})
    assert cause.text == "attempt 3 of 5 is under way for 12 s; attempt 2 failed: unlucky: no luck"


def test_workers_that_are_alive_and_do_not_take_it_are_counted() -> None:
    (cause,) = found(row(owner=None, ready_at=stored(at(-5))), book(), alive=2)
    assert cause.text == "it is due, for 5.00 s, and no worker has taken it (2 are alive)"


def test_unread_messages_are_counted_and_named() -> None:
    (cause,) = found(row(), book(), message(1, "signal", "approved"))
    assert cause.text == "1 message sent to it is not read (signal approved)"
    (cause,) = found(row(), book(), *(message(n, "signal", "x") for n in range(1, 6)))
    assert cause.text == "5 messages sent to it are not read (signal x, signal x, signal x, …)"
    assert cause.kind == "mail"


def test_a_pause_that_is_not_read_yet_is_told() -> None:
    paused, mail = found(row(), book(), message(1, "pause"))
    assert paused.text == "it is to pause, and has not read that yet"
    assert (paused.advice, mail.kind) == ("perdure unpause order/1", "mail")
    (mail,) = found(row(), book(), message(1, "pause"), message(2, "unpause"))
    assert mail.kind == "mail"


def test_an_unpause_that_is_not_read_yet_is_told() -> None:
    made = book()
    made.paused = at(-60)
    paused, _ = found(row(), made, message(1, "unpause"))
    assert paused.text == "it is paused, for 1 m 00 s; it is to go on, and has not read that yet"
    assert paused.advice == ""


def test_an_imported_run_says_so() -> None:
    paused, _ = found(row(owner=None), book(), message(3, "pause", id="import-"))
    assert paused.text == "it is paused, since it was imported"
    assert paused.advice == "when no other store works on it: perdure unpause order/1"


def test_a_delayed_run_says_when_it_begins() -> None:
    view = NodeView("fetch", "pending", 1, at(0))
    later = stored(at(60))
    start, _ = found(row(owner=None, ready_at=later, not_before=later), book(view))
    assert (start.kind, start.until) == ("start", at(60))


def test_the_next_time_is_the_earliest_of_all() -> None:
    made = book(
        NodeView("a", "waiting", 0, at(-9), wake_at=at(40)), NodeView("b", "pending", 2, at(30))
    )
    made.deadline = at(50)
    assert next_due(row(), made) == at(30)
    assert next_due(row(owner=None, ready_at=stored(at(20))), made) == at(20)
    assert next_due(row(), book()) is None
    assert next_due(row(owner=None), made) is None


def test_a_call_of_code_says_how_many_attempts_there_are_as_it_was_recorded() -> None:
    made = NodeBook()
    record = {"time": at(-5), "node": "charge", "do": "DispatchTask", "attempt": 1}
    made.take({"time": at(-5), "node": "charge", "do": "CreateTask", "status": "pending"})
    made.take(record | {"attempts": 5})
    (cause,) = found(row(), made)
    assert cause.text.startswith("attempt 1 of 5 is under way")
    failed = {"time": at(-4), "node": "charge", "do": "RetryTask", "attempt": 1}
    made.take(failed | {"failure": LUCKLESS, "not_before": stored(at(60))})
    (cause,) = found(row(), made)
    assert cause.text.startswith("attempt 2 of 5 is due in 1 m 00 s")


def test_code_that_waits_for_what_nothing_can_bring_is_told() -> None:
    made = book()
    made.code = True
    (cause,) = found(row(owner=None), made)
    assert (cause.kind, cause.advice) == ("nothing", "perdure cancel order/1")
    assert "a lock" in cause.text
    assert found(row(), made) == []  # a worker has it: it is between two calls
    made = book(NodeView("wait:go", "waiting", 0, at(-9), signal="go"))
    made.code = True
    assert [cause.kind for cause in found(row(owner=None), made)] == ["signal"]
