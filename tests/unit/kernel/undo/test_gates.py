"""Gates: a step that is skipped by its own condition counts as completed (SX-1)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure.model.errors import StoreError
from tests.unit.kernel.drawing import chain, cond, edge, fork, join, sw, task
from tests.unit.kernel.harness import (
    Harness,
    created,
    dispatched,
    failure_of,
    finish,
    kinds,
)
from tests.unit.kernel.undo.drawing import Gate, Saga, line, undo_all, undone


class Unreadable(Exception):
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.rule("SX-1", "S-15")
def test_a_skipped_step_lets_what_follows_run_and_is_not_undone(saga: Saga) -> None:
    gate = Gate(False)
    h = line(saga, "a", "b", "c", gates={"b": gate})
    h.start({"vip": True})
    step = h.complete("a")
    assert kinds(step) == ["CompleteTask", "CreateTask", "CreateTask", "DispatchTask"]
    assert (created(step, "skipped"), dispatched(step)) == (["b"], ["c"])
    assert gate.asked == [b'{"vip":true}']
    h.fail("c")
    undo_all(h)
    assert undone(h) == ["a"]


@pytest.mark.rule("SX-1")
def test_a_gate_that_opens_runs_its_step(saga: Saga) -> None:
    h = line(saga, "a", "b", gates={"a": Gate(True), "b": Gate(True)})
    assert dispatched(h.start()) == ["a"]
    assert dispatched(h.complete("a")) == ["b"]


@pytest.mark.rule("SX-1")
def test_a_run_of_skipped_steps_alone_completes(saga: Saga) -> None:
    h = line(saga, "a", "b", gates={"a": Gate(False), "b": Gate(False)})
    step = h.start()
    assert created(step, "skipped") == ["a", "b"]
    assert finish(step).status == "completed"


@pytest.mark.rule("SX-1", "S-2")
def test_a_join_waits_for_the_others_and_counts_a_skipped_one_as_done(saga: Saga) -> None:
    h = saga(
        [fork("f"), task("a"), task("b"), task("c")],
        [edge("f", "a"), edge("f", "b"), edge("a", "c"), edge("b", "c")],
        gates={"a": Gate(False)},
    )
    assert dispatched(h.start()) == ["b"]
    assert dispatched(h.complete("b")) == ["c"]


@pytest.mark.rule("SX-1")
def test_a_gate_is_not_asked_where_no_way_leads(saga: Saga) -> None:
    gate = Gate(True)
    h = saga(
        [sw("s"), task("a"), task("b"), join("j")],
        [cond("s", "a", "false"), cond("s", "b", "true"), edge("a", "j"), edge("b", "j")],
        gates={"a": gate},
    )
    h.start()
    assert (h.status("a"), gate.asked) == ("skipped", [])
    assert h.nodes["a"].branches is None


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ValueError("no vip"), "no vip"),
        (Unreadable(), "(its text cannot"),
        (asyncio.CancelledError("mine"), "mine"),
        (ValueError("half \ud800"), "half ?"),
    ],
)
def test_a_gate_that_raises_fails_its_step_and_the_run_is_undone(
    saga: Saga, error: BaseException, says: str
) -> None:
    h = line(saga, "a", "b", "c", gates={"b": Gate(error)})
    h.start()
    step = h.complete("a")
    failure = failure_of(step, "b")
    assert (failure.kind, failure.permanent) == (type(error).__name__, True)
    assert failure.message.startswith(f"the condition of node b failed: {says}")
    assert dispatched(step) == ["a~undo"]
    assert undo_all(h).status == "failed"


@pytest.mark.rule("SX-1")
def test_a_gate_is_asked_again_when_its_step_is_retried(saga: Saga) -> None:
    gate = Gate(ValueError("not yet"))
    h = line(saga, "a", "b", gates={"a": gate})
    h.start()
    assert h.run.status == "failed"
    gate.answer = False
    step = h.retry()
    assert (created(step, "skipped"), dispatched(step)) == (["a"], ["b"])


@pytest.mark.rule("SX-1")
def test_a_gate_is_asked_once_though_the_decision_is_made_again(saga: Saga) -> None:
    """After a Load, and after trouble with the store: what it said the first time counts."""
    gate = Gate(False)
    nodes = [task("a"), task("b"), task("c"), task("d", "{{tasks.a.output}}")]
    h = saga(nodes, chain("a", "b", "c", "d"), gates={"c": gate})
    h.start()
    h.complete("a")
    h.reload()  # what `a` gave is not in memory
    h.live = True
    h.load_error = StoreError("down")
    with pytest.raises(StoreError):
        h.complete("b")
    gate.answer = True
    h.load_error = None
    step = h.complete("b")
    assert (created(step, "skipped"), dispatched(step)) == (["c"], ["d"])
    assert (len(gate.asked), len(h.loads) >= 1) == (1, True)


def test_what_a_gate_said_of_another_input_is_not_its_answer(saga: Saga) -> None:
    """Of a retry that came to nothing, before another one."""
    gate = Gate(ValueError("not yet"))
    nodes = [task("a"), task("b"), task("c", "{{tasks.a.output}}")]
    h = saga(nodes, chain("a", "b", "c"), gates={"b": gate})
    h.start("one")
    h.complete("a")
    h.reload()
    h.live = True
    gate.answer, h.load_error = False, StoreError("down")
    with pytest.raises(StoreError):
        h.retry(input="two")
    gate.answer, h.load_error = True, None
    assert dispatched(h.retry(input="three")) == ["b"]
    assert gate.asked == [b'"one"', b'"two"', b'"three"']


def two_entries(saga: Saga, **rest: Any) -> Harness:
    """`a` and `b` depend on nothing, `c` on both."""
    edges = [edge("a", "c"), edge("b", "c")]
    return saga([task("a"), task("b"), task("c")], edges, all_entries=True, **rest)


@pytest.mark.rule("S-2")
def test_a_run_may_begin_at_every_node_that_depends_on_nothing(saga: Saga) -> None:
    h = two_entries(saga)
    assert dispatched(h.start()) == ["a", "b"]
    assert dispatched(h.complete("a")) == []
    assert dispatched(h.complete("b")) == ["c"]


@pytest.mark.rule("S-2", "D-8")
def test_an_entry_that_never_began_begins_when_the_run_is_retried(saga: Saga) -> None:
    gate = Gate(ValueError("not yet"))
    h = two_entries(saga, gates={"a": gate})
    step = h.start()
    assert (dispatched(step), finish(step).status) == ([], "failed")
    gate.answer = True
    assert dispatched(h.retry()) == ["a", "b"]
