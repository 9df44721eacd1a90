"""Cancelling and pausing: at any moment, once, and nothing is left that could wake."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import CancelTasks, SetPaused
from perdure.kernel.events import (
    DeadlineReached,
    NodeCompleted,
    NodeFailed,
    RunCancelled,
    RunPaused,
    RunUnpaused,
    TimerFired,
)
from perdure.model.errors import InvalidRequest, RunFinished
from perdure.model.failure import FailureRecord
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, edge, fork, task, wait, wait_for
from tests.unit.kernel.harness import (
    NEW_YEAR,
    Harness,
    dispatched,
    finish,
    kinds,
    of,
    text,
)

BOOM = FailureRecord("Error", "boom")


def every_kind_of_active(draw: Draw) -> Harness:
    """Running, in backoff, waiting for time, waiting for a signal; one has completed."""
    h = draw(
        [fork("f"), task("run"), task("back", retry={"attempts": 5}), wait("w", duration="1h"),
         wait_for("s", "go", timeout="1h"), task("done"), task("z")],
        [*(edge("f", n) for n in ("run", "back", "w", "s", "done")), edge("run", "z")],
    )  # fmt: skip
    h.start()
    h.complete("done")
    h.fail("back")
    return h


@pytest.mark.rule("G-17", "G-33", "G-94", "D-39", "D-1")
def test_a_cancel_ends_every_kind_of_active_node_and_the_run(draw: Draw) -> None:
    # scenarios 23, 35, 37
    h = every_kind_of_active(draw)
    step = h.cancel("the customer left")
    assert kinds(step) == ["CancelTasks", "FinishRun"]
    (order,) = of(step, CancelTasks)
    assert (order.nodes, order.status) == (("run", "back", "w", "s"), "failed")
    assert (order.failure.kind, order.failure.message) == (
        "workflow.canceled", "the customer left",
    )  # fmt: skip
    assert {h.status(node) for node in order.nodes} == {"failed"}
    assert (h.status("done"), h.status("z"), h.run.active) == ("completed", "unreached", 0)
    end = finish(step)
    assert (end.status, end.failure, h.run.status) == ("canceled", order.failure, "canceled")


@pytest.mark.rule("G-94")
def test_without_a_reason_it_reads_cancelled(draw: Draw) -> None:
    h = every_kind_of_active(draw)
    assert finish(h.cancel()).failure.message == "cancelled"


@pytest.mark.rule("G-95", "G-86")
def test_whatever_comes_after_a_cancel_is_ignored(draw: Draw) -> None:
    # scenarios 25, 33, 40
    h = every_kind_of_active(draw)
    due = NEW_YEAR + 3_600_000_000
    tasks = {node: (state.task, state.attempt) for node, state in h.nodes.items()}
    h.cancel()
    h.advance(3600)
    for node, (task_id, attempt) in tasks.items():
        for event in (
            NodeCompleted(task_id, node, attempt, text({})),
            NodeFailed(task_id, node, attempt, BOOM),
            TimerFired(task_id, node, due),
        ):
            assert h.apply(event).ignored
    assert h.apply(DeadlineReached()).ignored


@pytest.mark.rule("G-95")
def test_a_step_that_finished_before_the_cancel_keeps_its_outcome(draw: Draw) -> None:
    # scenario 33
    h = draw([fork("f"), task("a"), task("b")], [edge("f", "a"), edge("f", "b")])
    h.start()
    h.complete("a", {"n": 1})
    h.cancel()
    assert (h.status("a"), h.status("b"), h.outputs["a"]) == ("completed", "failed", text({"n": 1}))


@pytest.mark.rule("G-94", "D-25")
@pytest.mark.parametrize("event", [RunCancelled(), RunPaused(), RunUnpaused()], ids=str)
def test_a_run_that_has_ended_refuses_and_says_how_it_ended(draw: Draw, event: object) -> None:
    for end in ("complete", "fail", "cancel"):
        h = draw([task("a")], [])
        h.start()
        h.cancel() if end == "cancel" else getattr(h, end)("a")
        status = {"complete": "completed", "fail": "failed", "cancel": "canceled"}[end]
        with pytest.raises(RunFinished, match=f"the run is {status}"):
            h.apply(event)  # type: ignore[arg-type]


@pytest.mark.parametrize("event", [RunCancelled(), RunPaused(), RunUnpaused()], ids=str)
def test_a_run_that_has_not_started_refuses(draw: Draw, event: object) -> None:
    h = draw([task("a")], [])
    with pytest.raises(InvalidRequest, match="not started"):
        h.apply(event)  # type: ignore[arg-type]


@pytest.mark.rule("G-94", "G-81")
def test_signals_that_are_kept_do_not_hold_a_cancel_up(draw: Draw) -> None:
    h = draw([task("a"), wait_for("w", "go")], chain("a", "w"))
    h.start()
    h.signal("go")
    assert finish(h.cancel()).status == "canceled"
    assert [signal.id for signal in h.run.signals] == ["m1"]


def test_pausing_is_recorded_once_and_holds_no_decision_up(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), wait("w", duration="1m"), wait_for("s", "go"), task("z")],
             [*chain("f", "a", "z"), edge("f", "w"), edge("f", "s")])  # fmt: skip
    h.start()
    assert h.pause().actions == [SetPaused(True)]
    assert h.run.paused
    assert h.pause().ignored == "the run is paused already"
    # whether a dispatch is carried out is for the engine to see: what is decided is the same
    assert dispatched(h.complete("a")) == ["z"]
    assert h.signal("go").signal_delivered
    h.fire("w")
    assert h.unpause().actions == [SetPaused(False)]
    assert h.unpause().ignored == "the run is not paused"
    assert finish(h.complete("z")).status == "completed"


def test_a_paused_run_can_be_canceled_and_reaches_its_deadline(draw: Draw) -> None:
    h = draw([task("a")], [])
    h.start()
    h.pause()
    assert finish(h.cancel()).status == "canceled"
    late = draw([task("a")], [])
    late.start(deadline=NEW_YEAR)
    late.pause()
    assert finish(late.apply(DeadlineReached())).status == "failed"
