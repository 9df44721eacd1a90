"""A cancel or a deadline of a run that may have something to undo: it comes to rest first."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import BeginCompensation, CancelTasks, RequestStop, ResolveWait
from perdure.kernel.events import NodeCompleted, TimerFired
from perdure.kernel.plan import PlannedUndo
from perdure.kernel.run import FORWARD, GRACE
from perdure.model.durations import SECOND
from perdure.model.failure import FailureRecord
from tests.unit.kernel.drawing import chain, edge, fork, task, wait, wait_for
from tests.unit.kernel.harness import NEW_YEAR, Harness, dispatched, finish, kinds, of, text
from tests.unit.kernel.undo.drawing import (
    GRACE_TIME,
    Saga,
    deadline,
    give_up,
    line,
    side_by_side,
    undo_all,
    undone,
)


def every_kind_of_active(saga: Saga, **rest: object) -> Harness:
    """`done` completed, `run` under way, `back` in backoff, `w` and `s` waiting; all have undos."""
    h = side_by_side(
        saga, "done", "run", task("back", retry={"attempts": 5, "max_delay": 0, "initial": 10}),
        wait("w", duration="1h"), wait_for("s", "go", timeout="1h"), **rest,
    )  # fmt: skip
    h.start(deadline=NEW_YEAR + 600 * SECOND)
    h.complete("done")
    h.fail("back")
    return h


@pytest.mark.rule("D-18", "SX-3")
@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_what_only_waits_ends_and_what_is_under_way_is_awaited(saga: Saga, how: str) -> None:
    h = every_kind_of_active(saga)
    if how == "deadline":
        h.advance(590)  # its time to try again came, and it failed once more
        h.fail("back", FailureRecord("Error", "later", retry_after=3600 * SECOND))
    step = h.cancel("the customer left") if how == "cancel" else deadline(h)
    assert kinds(step) == ["RequestStop", "CancelTasks", "CreateTask"]
    (stop,) = of(step, RequestStop)
    if how == "cancel":
        assert (stop.reason, stop.failure.kind, stop.failure.message) == (
            "cancel", "workflow.canceled", "the customer left",
        )  # fmt: skip
    else:
        assert (stop.reason, stop.failure.kind) == ("timeout", "workflow.timeout")
    (order,) = of(step, CancelTasks)
    assert (order.nodes, order.status, order.unknown) == (("back", "w", "s"), "canceled", False)
    assert (h.status("run"), h.run.phase, undone(h)) == ("pending", FORWARD, [])


@pytest.mark.rule("D-18")
def test_a_step_that_completes_while_the_run_stops_is_undone_too(saga: Saga) -> None:
    h = every_kind_of_active(saga)
    h.cancel("enough")
    step = h.complete("run", {"charged": 5})
    assert kinds(step) == [
        "CompleteTask", "ResolveWait", "BeginCompensation", "CreateTask", "DispatchTask",
    ]  # fmt: skip
    assert of(step, ResolveWait)[0].node == GRACE
    end = undo_all(h)
    assert undone(h) == ["run", "done"]
    assert (end.status, end.failure.kind, end.failure.message) == (
        "canceled", "workflow.canceled", "enough",
    )  # fmt: skip
    assert end.failure.details == {"undone": ["run", "done"], "undo_failed": [], "unknown": []}


@pytest.mark.rule("S-15")
def test_nothing_follows_from_what_completes_while_the_run_stops(saga: Saga) -> None:
    h = line(saga, "a", "b", undo=["b"])
    h.start()
    h.cancel()
    step = h.complete("a")
    assert (dispatched(step), finish(step).status) == ([], "canceled")
    assert h.status("b") == "unreached"


@pytest.mark.rule("S-15")
def test_a_step_that_fails_while_the_run_stops_is_not_tried_again_nor_undone(saga: Saga) -> None:
    h = side_by_side(saga, "a", task("b", retry={"attempts": 5}))
    h.start()
    h.complete("a")
    h.cancel("enough")
    step = h.fail("b", "declined")
    assert kinds(step)[0] == "FailTask"
    assert finish_of(h) == ("canceled", "enough", ["a"], [])


def finish_of(h: Harness) -> tuple[str, str, list[str], list[str]]:
    """How the run ends once all is undone."""
    end = undo_all(h)
    details = end.failure.details
    return end.status, end.failure.message, details["undone"], details["unknown"]


@pytest.mark.parametrize("how", ["given up", "timed out", "canceled", "no answer"])
def test_what_may_have_happened_is_undone_and_named(saga: Saga, how: str) -> None:
    h = side_by_side(saga, "a", "b")
    h.start()
    h.complete("a")
    h.cancel("enough")
    if how == "given up":
        step = give_up(h, "b")
    elif how == "no answer":
        step = h.fire(GRACE)
        assert of(step, ResolveWait)[0].status == "completed"
    else:
        kind = "workflow.timeout" if how == "timed out" else "workflow.canceled"
        step = h.fail("b", FailureRecord(kind, "it was late"))
    (order,) = of(step, CancelTasks)
    assert (order.nodes, order.status, order.unknown) == (("b",), "canceled", True)
    assert of(step, BeginCompensation)[0].unknown == ("b",)
    assert finish_of(h) == ("canceled", "enough", ["b", "a"], ["b"])
    assert h.status("b") == "compensated"


def test_a_step_may_say_that_its_undo_is_for_what_completed_alone(saga: Saga) -> None:
    h = side_by_side(saga, "a", "b", undo={"a": PlannedUndo(), "b": PlannedUndo(unknown=False)})
    h.start()
    h.complete("a")
    h.cancel("enough")
    give_up(h, "b")
    assert finish_of(h) == ("canceled", "enough", ["a"], ["b"])
    assert h.status("b") == "canceled"


def test_what_had_not_begun_is_not_undone(saga: Saga) -> None:
    h = side_by_side(saga, "a", "b")
    h.start()
    h.complete("a")
    h.cancel("enough")
    step = give_up(h, "b", begun=False)
    assert not of(step, CancelTasks)[0].unknown
    assert finish_of(h) == ("canceled", "enough", ["a"], [])


def test_an_unknown_end_is_told_of_also_where_there_is_nothing_to_undo(saga: Saga) -> None:
    h = line(saga, "a", "b", undo=["b"])
    h.start()
    h.cancel()
    end = finish(give_up(h, "a"))
    assert end.failure.details == {"undone": [], "undo_failed": [], "unknown": ["a"]}


@pytest.mark.rule("S-18")
def test_attempts_with_a_timeout_are_awaited_for_it_and_others_for_the_grace(saga: Saga) -> None:
    h = side_by_side(saga, task("a", timeout=300), task("b", timeout=0), "c")
    h.start()
    h.cancel()
    assert h.nodes[GRACE].wake_at == NEW_YEAR + GRACE_TIME
    (order,) = of(h.fire(GRACE), CancelTasks)
    assert order.nodes == ("b", "c")
    assert (h.status("a"), h.run.phase) == ("pending", FORWARD)
    h.complete("a")
    assert undo_all(h).failure.details["unknown"] == ["b", "c"]
    assert undone(h) == ["a", "c", "b"]


def test_no_time_is_measured_where_all_attempts_have_their_own(saga: Saga) -> None:
    h = side_by_side(saga, task("a", timeout=300))
    h.start()
    assert kinds(h.cancel()) == ["RequestStop"]


def test_the_grace_is_the_definition_s(saga: Saga) -> None:
    h = line(saga, "a", grace=5 * SECOND)
    h.start()
    h.cancel()
    assert h.nodes[GRACE].wake_at == NEW_YEAR + 5 * SECOND
    early = h.apply(TimerFired(h.nodes[GRACE].task, GRACE, NEW_YEAR + 5 * SECOND))
    assert "early" in (early.ignored or "")


@pytest.mark.rule("SX-9")
def test_late_reports_and_further_orders_change_nothing(saga: Saga) -> None:
    h = side_by_side(saga, "a", "b")
    h.start(deadline=NEW_YEAR + 600 * SECOND)
    h.complete("a")
    task_of_b = h.nodes["b"].task
    h.cancel("first")
    assert h.cancel("second").ignored == "the run is stopping already: first"
    h.fire(GRACE)
    assert h.apply(NodeCompleted(task_of_b, "b", 0, text(1))).ignored
    assert deadline(h).ignored == "the run undoes what it did already: first"
    assert undo_all(h).failure.message == "first"
    assert undone(h) == ["b", "a"]
    with_late = h.apply(NodeCompleted(task_of_b, "b", 0, text(1)))
    assert (with_late.ignored is not None, h.status("b")) == (True, "compensated")


@pytest.mark.rule("D-18")
def test_a_deadline_undoes_and_the_run_fails_with_its_timeout(saga: Saga) -> None:
    h = line(saga, "a", "b")
    h.start(deadline=NEW_YEAR + 600 * SECOND)
    h.complete("a")
    deadline(h)
    h.complete("b")
    end = undo_all(h)
    assert (end.status, end.failure.kind, end.failure.message) == (
        "failed", "workflow.timeout", "the run reached its max_duration before b had ended",
    )  # fmt: skip


def test_a_run_stopped_with_nothing_under_way_undoes_at_once(saga: Saga) -> None:
    h = saga([task("a"), wait("w", duration="1h")], chain("a", "w"), undo=["a"])
    h.start()
    h.complete("a")
    step = h.cancel()
    assert kinds(step) == [
        "RequestStop", "CancelTasks", "BeginCompensation", "CreateTask", "DispatchTask",
    ]  # fmt: skip


@pytest.mark.rule("D-17", "D-18")
def test_draining_lets_what_is_under_way_finish_and_then_undoes_it(saga: Saga) -> None:
    h = side_by_side(saga, "bad", "run", task("back", retry={"attempts": 2, "initial": 10}))
    h.start()
    h.fail("back")
    step = h.fail("bad", "no stock")
    assert kinds(step) == ["FailTask", "CancelTasks"]
    assert (of(step, CancelTasks)[0].nodes, h.run.stopping) == (("back",), None)
    h.complete("run")
    end = undo_all(h)
    assert undone(h) == ["run"]
    assert (end.status, end.failure.message) == ("failed", "node bad failed: no stock")


@pytest.mark.rule("D-17", "D-18")
def test_a_cancel_hurries_a_run_that_drains_and_its_failure_stays_the_reason(saga: Saga) -> None:
    h = side_by_side(saga, "bad", "run", "done")
    h.start()
    h.complete("done")
    h.fail("bad", "no stock")
    (stop,) = of(h.cancel("hurry"), RequestStop)
    assert (stop.reason, stop.failure.message) == ("failure", "hurry")
    give_up(h, "run")
    assert finish_of(h) == ("failed", "node bad failed: no stock", ["run", "done"], ["run"])


@pytest.mark.rule("D-17", "D-18")
def test_on_failure_cancel_asks_the_others_to_stop_and_awaits_them(saga: Saga) -> None:
    h = side_by_side(saga, "bad", "run", wait("w", duration="1h"), on_failure="cancel")
    h.start()
    step = h.fail("bad", "no stock")
    assert kinds(step) == ["FailTask", "RequestStop", "CancelTasks", "CreateTask"]
    assert of(step, RequestStop)[0].reason == "failure"
    h.complete("run")
    assert finish_of(h) == ("failed", "node bad failed: no stock", ["run"], [])


@pytest.mark.rule("D-17", "D-18")
def test_on_failure_continue_undoes_when_the_other_branches_have_ended(saga: Saga) -> None:
    h = saga(
        [fork("f"), task("bad"), task("a"), task("b")],
        [edge("f", "bad"), *chain("f", "a", "b")],
        undo=["a", "b"], on_failure="continue",
    )  # fmt: skip
    h.start()
    assert kinds(h.fail("bad", "no stock")) == ["FailTask"]
    assert dispatched(h.complete("a")) == ["b"]
    h.complete("b")
    assert finish_of(h) == ("failed", "node bad failed: no stock", ["b", "a"], [])


def test_pausing_and_signals_go_on_while_the_run_stops(saga: Saga) -> None:
    h = line(saga, "a")
    h.start()
    h.cancel("enough")
    h.pause()
    assert not h.signal("news").signal_delivered
    h.unpause()
    h.complete("a")
    assert finish_of(h) == ("canceled", "enough", ["a"], [])
