"""Giving a decision up puts everything back, whatever it had done by then."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import CancelTasks, CreateTask, ReopenRun
from perdure.kernel.protocol import Load, Loaded
from perdure.kernel.run import KeptSignal, NodeState
from perdure.kernel.turn import NeedLoad, Turn
from perdure.model.failure import FailureRecord
from tests.unit.kernel.drawing import edge, fork, task, wait
from tests.unit.kernel.harness import Harness, plan_of, shown, text

BOOM = FailureRecord("Error", "boom")


def a_turn() -> Turn:
    """Over a run where a has completed, b is pending and c waits."""
    plan = plan_of(
        [fork("f"), task("a"), task("b"), wait("c", duration="1h")],
        [edge("f", n) for n in ("a", "b", "c")],
        output="{{tasks.a.output}}",
    )
    h = Harness(plan, live=True)
    h.start()
    h.complete("a", 5)
    turn = Turn(plan, h.run, h.deps)
    turn.outputs["a"] = text(5)
    return turn


@pytest.mark.rule("D-10", "G-33")
def test_nodes_that_were_canceled_together_are_as_they_were() -> None:
    turn = a_turn()
    before = shown(turn.run)
    turn.begin(turn.run.at + 1)
    turn.emit_cancel(CancelTasks(BOOM, ("b", "c")))
    assert (turn.run.active, turn.run.failed) == (0, 2)
    turn.roll_back()
    assert (shown(turn.run), turn.actions) == (before, [])


@pytest.mark.rule("D-10", "G-32")
def test_a_run_that_was_reopened_is_as_it_was_also_in_its_order() -> None:
    turn = a_turn()
    turn.run.nodes["b"] = NodeState("t003", "failed")
    turn.run.nodes["c"] = NodeState("t004", "skipped")
    turn.run.status, turn.run.active, turn.run.failures = "failed", 0, (("b", BOOM),)
    turn.scope(("a",))
    before, outputs, views = shown(turn.run), dict(turn.outputs), dict(turn.views)
    turn.begin(turn.run.at + 1)
    turn.emit_reopen(ReopenRun("2", "h2", ("a", "b"), input=text(1)))
    assert (list(turn.run.nodes), turn.outputs, turn.views) == (["f", "c"], {}, {})
    assert turn.scope(())["input"] == 1
    turn.emit(CreateTask("t009", "a", "completed", output=text(6)))
    turn.remember("a", text(6))
    turn.roll_back()
    assert (shown(turn.run), turn.outputs, turn.views) == (before, outputs, views)
    assert turn.scope(("a",))["input"] is None


@pytest.mark.rule("D-34")
def test_a_payload_that_was_loaded_stays_in_memory_for_one_decision_only() -> None:
    turn = a_turn()
    turn.begin(turn.run.at)
    turn.loaded(Load(signals=("m1",)), Loaded(signals={"m1": text(1)}))
    turn.roll_back()
    turn.begin(turn.run.at)
    assert turn.payload(KeptSignal("m1", "go")) == text(1)
    turn.keep()
    with pytest.raises(NeedLoad):
        turn.payload(KeptSignal("m1", "go"))


def test_a_decision_that_stands_cannot_be_rolled_back_by_a_later_one() -> None:
    turn = a_turn()
    turn.run.nodes["b"] = NodeState("t003", "failed")
    turn.run.nodes["c"] = NodeState("t004", "skipped")
    turn.run.status, turn.run.active = "failed", 0
    turn.begin(turn.run.at + 1)
    turn.emit_reopen(ReopenRun("2", "h2", ("b",)))
    turn.emit(CreateTask("t009", "b", "pending", input=text({})))
    turn.keep()
    before = shown(turn.run)
    turn.begin(turn.run.at + 1)
    turn.roll_back()
    assert shown(turn.run) == before
