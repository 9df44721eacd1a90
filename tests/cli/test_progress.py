"""Progress while it happens: told in lines, drawn as a picture, and beside what is logged."""

from __future__ import annotations

import io
import logging
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Self

import pytest

from perdure.cli.lines import Lines
from perdure.cli.logs import brief, log_to
from perdure.cli.node_view import Change, NodeView
from perdure.cli.nodes import NodeBook
from perdure.cli.output import has_rich
from perdure.cli.progress import Progress
from perdure.cli.screens import screen_for
from perdure.cli.serving import Told
from perdure.graph.definition import Graph
from perdure.kernel.actions import (
    CompleteTask,
    CreateTask,
    DispatchTask,
    FailTask,
    ResolveWait,
    RetryTask,
    Transition,
)
from perdure.kernel.run import NodeState, Run
from perdure.model.failure import FailureRecord
from tests.cli.commands import GREETING

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


class Heard:
    """A Screen that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.changes: list[str] = []

    def changed(self, change: Change) -> None:
        self.changes.append(f"{change.node} {change.text}")

    def note(self, text: str) -> None:
        self.notes.append(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None: ...


def live(id: str = "o-1", *, epoch: int = 1, seq: int = 5) -> Any:
    definition = SimpleNamespace(name="order", version="v1")
    return SimpleNamespace(definition=definition, run_id=id, epoch=epoch, seq=seq)


def progress() -> tuple[Progress, Heard]:
    heard = Heard()
    return Progress("order", "o-1", NodeBook(), heard), heard


def test_a_run_that_is_born_here_starts() -> None:
    shown, heard = progress()
    shown.entered(live(epoch=0), Run())
    assert heard.notes == ["order/o-1 starts, version v1"]


def test_a_run_that_goes_on_says_from_where_and_what_is_not_done_again() -> None:
    shown, heard = progress()
    nodes = {
        "fetch": NodeState("t1", "completed"),
        "reserve": NodeState("t2", "pending"),
        "charge": NodeState("t3", "pending", attempt=2),
    }
    shown.entered(live(), Run(nodes=nodes))
    assert heard.notes == [
        "order/o-1 goes on from reserve, charge (attempt 3): 1 node is recorded, and not done again"
    ]


def test_other_runs_are_named_until_there_are_many() -> None:
    shown, heard = progress()
    for n in range(6):
        shown.entered(live(f"x-{n}"), Run())
    assert [note.split(",")[0] for note in heard.notes] == [
        "also goes on with order/x-0", "also goes on with order/x-1",
        "also goes on with order/x-2", "also goes on with further runs",
    ]  # fmt: skip


def started(node: str) -> list[Any]:
    return [CreateTask("t", node, "pending"), DispatchTask("t", node)]


def test_what_other_runs_record_is_not_told() -> None:
    shown, heard = progress()
    shown.recorded(live("x-1"), Transition(0, started("a")))
    assert heard.changes == []
    shown.recorded(live(), Transition(0, started("a")))
    assert heard.changes == ["a started (attempt 1)"]


def test_what_is_dispatched_while_stopping_is_not_told_as_started() -> None:
    shown, heard = progress()
    shown.recorded(live(), Transition(0, started("a")))
    shown.stopping = True
    shown.recorded(live(), Transition(9, [CompleteTask("t", "a"), *started("b")]))
    assert heard.changes == ["a started (attempt 1)", "a completed (attempt 1, 0.00 s)"]


def test_a_run_of_another_process_is_followed_from_record_to_record() -> None:
    shown, heard = progress()
    records = [
        {"do": "CreateTask", "seq": 1, "time": NOW, "node": "a", "status": "skipped"},
        {"do": "CreateTask", "seq": 2, "time": NOW, "node": "b", "status": "skipped"},
    ]
    shown.follow(records[:1])
    shown.follow(records[:1])
    shown.complete(records)
    assert heard.changes == ["a skipped", "b skipped"]


def test_a_run_that_waited_in_nobodys_memory_comes_back_without_a_word() -> None:
    shown, heard = progress()
    waits = CreateTask("t", "a", "waiting", awaited_signal="approved")
    shown.entered(live(epoch=0), Run())
    shown.recorded(live(seq=6), Transition(0, [waits]))
    told = list(heard.notes)
    shown.entered(live(epoch=2, seq=6), Run(nodes={"a": NodeState("t", "waiting")}))
    shown.recorded(live(epoch=2, seq=7), Transition(9, [ResolveWait("t", "a", "completed")]))
    assert heard.notes == told
    assert heard.changes == ["a waits for signal approved", "a got signal approved (after 0.00 s)"]


def test_what_others_did_meanwhile_is_known_when_a_run_comes_back() -> None:
    shown, _ = progress()
    shown.recorded(live(seq=6), Transition(0, [CreateTask("t", "a", "waiting")]))
    nodes = {"a": NodeState("t", "completed"), "b": NodeState("u", "pending", 1)}
    shown.here = True
    shown.entered(live(epoch=3, seq=9), Run(nodes=nodes))
    found = {view.node: (view.status, view.attempt) for view in shown.book.nodes.values()}
    assert found == {"a": ("completed", 1), "b": ("pending", 2)}


def test_a_run_that_goes_on_says_what_it_waits_for() -> None:
    shown, heard = progress()
    nodes = {
        "fetch": NodeState("t1", "completed"),
        "review": NodeState("t2", "waiting", awaited_signal="approved"),
    }
    shown.entered(live(), Run(nodes=nodes))
    assert heard.notes == ["order/o-1 goes on from review: 1 node is recorded, and not done again"]
    assert heard.changes == ["review waits for signal approved"]


def test_a_run_of_others_that_is_joined_says_how_it_stands_and_is_followed_from_there() -> None:
    shown, heard = progress()
    waits = {"do": "CreateTask", "seq": 1, "time": NOW, "node": "a", "status": "waiting"}
    skipped = {"do": "CreateTask", "seq": 2, "time": NOW, "node": "b", "status": "skipped"}
    shown.joined([{**waits, "awaited_signal": "approved"}])
    assert heard.notes == ["order/o-1 begins at a: nothing had completed before"]
    shown.follow([waits, skipped])
    assert heard.changes == ["a waits for signal approved", "b skipped"]


def test_a_run_that_had_ended_before_is_known_but_not_told_again() -> None:
    shown, heard = progress()
    shown.complete([{"do": "CreateTask", "seq": 1, "time": NOW, "node": "a", "status": "skipped"}])
    assert heard.changes == []
    assert list(shown.book.nodes) == ["a"]


def test_a_run_that_ended_before_the_first_look_is_told_all_the_same() -> None:
    shown, heard = progress()
    shown.joined([{"do": "OpenRun", "time": NOW, "seq": 1}])
    shown.complete(
        [
            {"do": "OpenRun", "time": NOW, "seq": 1},
            {"do": "CreateTask", "time": NOW, "seq": 2, "node": "a", "status": "skipped"},
        ]
    )
    assert heard.changes == ["a skipped"]


def test_lines_go_to_stderr_and_so_does_what_steps_print(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Lines(5) as lines:
        lines.changed(Change(NOW, "a", "skipped"))
        lines.note("look")
        sys.stdout.write("from a step\n")
    sys.stdout.write("the result\n")
    said = capsys.readouterr()
    assert said.out == "the result\n"
    first, second, third = said.err.splitlines()
    assert first == f"{NOW.astimezone():%H:%M:%S}  a      skipped"
    assert second.endswith("  look")
    assert third == "from a step"


class Unwritable(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_a_run_goes_on_when_its_progress_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", Unwritable())
    with Lines(5) as lines:
        lines.changed(Change(NOW, "a", "skipped"))
        lines.note("look")


def test_whoever_logs_does_not_fail_because_it_cannot_be_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken(Heard):
        def note(self, text: str) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Unwritable())
    with log_to(Broken(), str):
        logging.getLogger("perdure.engine").warning("look")


def drawn(book: NodeBook, order: dict[str, str], height: int = 40) -> list[str]:
    """The picture as plain text."""
    console = pytest.importorskip("rich.console", reason="rich is not installed")
    from perdure.cli.picture import Picture

    out = io.StringIO()
    picture = Picture(book, order)
    console.Console(file=out, width=80, height=height).print(picture.drawing(height))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_picture_shows_every_node_in_the_order_of_the_document() -> None:
    book = NodeBook()
    book.nodes = {
        "fetch": NodeView("fetch", "completed", 1, NOW, NOW + timedelta(seconds=1.5)),
        "route": NodeView("route", "completed", 0, None, NOW, branches=["ship"]),
        "review": NodeView("review", "skipped", 0, None, NOW),
        "ship": NodeView("ship", "failed", 2, NOW, NOW, failure={"message": "no truck"}),
        "call": NodeView("call", "waiting", 0, NOW, NOW, signal="called"),
    }
    lines = drawn(book, dict.fromkeys([*book.nodes, "notify"], "TASK"))
    assert [line.split() for line in lines] == [
        ["✓", "fetch", "completed", "1.50", "s"],
        ["✓", "route", "completed", "chose", "ship"],
        ["·", "review", "skipped"],
        ["✗", "ship", "failed", "0.00", "s", "attempt", "2", "no", "truck"],
        ["◦", "call", "waiting", "0.00", "s", "for", "signal", "called"],
        ["notify"],
    ]


def test_beside_the_picture_the_command_that_sends_a_signal_stands_whole() -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    from perdure.cli.picture import Picture

    book = NodeBook(lambda name: f"perdure signal {'x' * 90}/1 {name}")
    picture = Picture(book, ["a", "b"])
    noted: list[str] = []
    picture.note = noted.append  # type: ignore[method-assign]
    waits = {"do": "CreateTask", "seq": 1, "time": NOW, "node": "a", "status": "waiting"}
    for record in (
        {**waits, "awaited_signal": "ok"}, {**waits, "node": "b", "status": "skipped"},
        {"do": "SetPaused", "seq": 2, "time": NOW, "paused": True},
    ):  # fmt: skip
        for change in book.take(record):
            picture.changed(change)
    assert noted == [
        f"a waits for signal ok (perdure signal {'x' * 90}/1 ok)",
        "paused: nothing new is started",
    ]


@pytest.mark.parametrize("at_terminal", [True, False])
def test_without_rich_or_a_terminal_there_are_lines(
    at_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph.load(GREETING)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: at_terminal, raising=False)
    assert isinstance(screen_for(NodeBook(), graph), Lines) is not (at_terminal and has_rich())
    monkeypatch.setitem(sys.modules, "rich", None)
    assert isinstance(screen_for(NodeBook(), graph), Lines)


def test_a_picture_of_many_nodes_shows_those_under_way_and_counts_the_rest() -> None:
    book = NodeBook()
    names = [f"n{i}" for i in range(100)]
    for name in names[:50]:
        book.nodes[name] = NodeView(name, "completed", 1, NOW, NOW)
    book.nodes["n7"].status = "pending"
    lines = drawn(book, dict.fromkeys(names, "TASK"), height=12)
    assert len(lines) == 9
    assert any(line.split()[1:3] == ["n7", "running"] for line in lines)
    assert lines[-1] == "… and 92 more nodes"


def test_a_log_of_a_failure_says_where_without_its_traceback() -> None:
    text = "attempt 1 failed\nTraceback (most recent call last):\n"
    text += '  File "/x/steps.py", line 5, in ship\n    raise X\nValueError: no truck\n'
    expected = 'attempt 1 failed: ValueError: no truck (File "/x/steps.py", line 5, in ship)'
    assert brief(text) == expected
    assert brief("all is well") == "all is well"


def test_what_the_engine_logs_is_shown_with_secrets_taken_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PERDURE_DEBUG", raising=False)
    heard = Heard()
    logger = logging.getLogger("perdure.engine")
    with log_to(heard, lambda text: text.replace("hunter2", "…")):
        logger.warning("the key is %s", "hunter2")
        logger.info("not for everybody")
    logger.info("after")
    assert heard.notes == ["warning: the key is …"]


def test_a_run_that_is_followed_is_read_on_and_not_again() -> None:
    shown, heard = progress()
    records = [{"do": "CreateTask", "seq": 4, "time": NOW, "node": "a", "status": "skipped"}]
    shown.follow(records)
    assert (shown.seen, heard.changes) == (4, ["a skipped"])


def test_an_attempt_that_raised_is_told_once_with_its_place() -> None:
    shown, heard = progress()
    failure = {"kind": "ValueError", "message": "boom"}
    with log_to(heard, str, shown.raised):
        logging.getLogger("perdure.engine").warning(
            "%s/%s: attempt %d of node %s failed\n%s", "order", "o-1", 1, "a",
            'Traceback (most recent call last):\n  File "/x/steps.py", line 7, in a\nValueError: x',
        )  # fmt: skip
        logging.getLogger("perdure.engine").warning(
            "%s/%s: attempt %d of node %s failed\n%s", "order", "another", 1, "a", "Boom"
        )
    record = {"do": "FailTask", "seq": 1, "time": NOW, "node": "a", "attempt": 1}
    shown.follow([{**record, "failure": failure}])
    assert heard.notes == ["warning: order/another: attempt 1 of node a failed\nBoom"]
    assert heard.changes == ["a failed (attempt 1): ValueError: boom (steps.py:7)"]


def test_of_a_wait_that_others_began_the_whole_time_is_told() -> None:
    shown, heard = progress()
    shown.entered(live(), Run(nodes={"ok": NodeState("t", "waiting", awaited_signal="yes")}))
    begun = {"do": "CreateTask", "node": "ok", "status": "waiting", "time": NOW}
    shown.recalled([begun, {"do": "Claimed", "time": NOW}])
    at = int((NOW + timedelta(hours=2)).timestamp() * 1_000_000)
    shown.recorded(live(), Transition(at, [ResolveWait("t", "ok", "completed")]))
    assert heard.changes[-1] == "ok got signal yes (after 2 h 00 m)"


def test_how_to_go_on_is_said_where_a_run_starts() -> None:
    heard = Heard()
    shown = Progress("order", "o-1", NodeBook(), heard, parting="go on with: x")
    shown.entered(live(epoch=0), Run())
    assert heard.notes == ["order/o-1 starts, version v1", "go on with: x"]


def erred(at: int, *actions: Any, quiet: bool = False, place: str = "") -> list[str]:
    """What a worker tells of attempts that failed."""
    heard = Heard()
    told = Told(heard, quiet)
    if place:
        told.raised("order", "o-1", "pay", 1, place)
    told.recorded(live(), Transition(at, list(actions)))
    return heard.notes


def test_a_worker_tells_attempts_that_failed_and_when_the_next_one_is() -> None:
    busy = FailureRecord("busy", "come again")
    again = RetryTask("t", "pay", 0, busy, 5_000_000)
    assert erred(2_000_000, again) == [
        "order/o-1 pay: attempt 1 failed: busy: come again; attempt 2 in 3.00 s"
    ]
    assert erred(2_000_000, FailTask("t", "pay", 2, busy)) == [
        "order/o-1 pay: attempt 3 failed: busy: come again"
    ]


def test_a_quiet_worker_tells_only_attempts_that_raised_what_nobody_declared() -> None:
    odd = RetryTask("t", "pay", 0, FailureRecord("KeyError", "'sum'"), 1_000_000)
    assert erred(0, odd, quiet=True) == []
    assert erred(0, odd, quiet=True, place="steps.py:7") == [
        "order/o-1 pay: attempt 1 failed: KeyError: 'sum' (steps.py:7); attempt 2 in 1.00 s"
    ]
