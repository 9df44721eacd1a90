"""Runs that were made for one which is to stop are asked to end, and awaited, before it undoes."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.kernel.actions import CancelChild, CancelTasks
from perdure.kernel.child_ids import call_id
from perdure.kernel.events import ChildFinished, ChildStarted
from perdure.kernel.run import FORWARD, GRACE
from perdure.model.failure import FailureRecord
from tests.unit.kernel.drawing import chain, child, edge, fork, task
from tests.unit.kernel.harness import Harness, Transition, dispatched, kinds, of, text
from tests.unit.kernel.undo.drawing import Saga, undo_all, undone


def with_child(saga: Saga, **rest: Any) -> Harness:
    """`done` completed; `pay`, a child, under way, with `after` behind it; `bad` under way."""
    h = saga(
        [fork("f"), task("done"), child("pay"), task("after"), task("bad")],
        [edge("f", "done"), edge("f", "bad"), *chain("f", "pay", "after")],
        undo=["done", "pay", "after"], **rest,
    )  # fmt: skip
    h.start()
    h.complete("done")
    return h


def call(h: Harness) -> str:
    state = h.nodes["pay"]
    return call_id(state.task, state.attempt)


def found(h: Harness, *, created: bool) -> Transition:
    return h.apply(ChildStarted(call(h), "pay", created))


def ended(h: Harness, status: Any) -> Transition:
    failure = FailureRecord("Boom", "it broke") if status != "completed" else None
    output = text(1) if status == "completed" else None
    return h.apply(ChildFinished(call(h), "pay", status, output, failure))


@pytest.mark.rule("D-18")
@pytest.mark.parametrize("how", ["cancel", "failure"])
def test_an_owned_child_is_canceled_and_awaited_before_anything_is_undone(
    saga: Saga, how: str
) -> None:
    h = with_child(saga)
    found(h, created=True)
    step = h.cancel() if how == "cancel" else h.fail("bad")
    assert [order.awaited for order in of(step, CancelChild)] == [True]
    if how == "cancel":
        h.fail("bad")
    assert (undone(h), h.status("pay"), h.run.phase) == ([], "pending", FORWARD)
    step = ended(h, "canceled")
    assert of(step, CancelTasks)[0].nodes == ("pay",)
    assert dispatched(step) == ["done~undo"]
    assert undo_all(h).failure.details["unknown"] == []


@pytest.mark.rule("D-18")
@pytest.mark.parametrize("how", ["cancel", "failure"])
def test_a_child_that_completes_all_the_same_is_undone_and_nothing_follows(
    saga: Saga, how: str
) -> None:
    h = with_child(saga)
    found(h, created=True)
    if how == "cancel":
        h.cancel()
        h.complete("bad")
    else:
        h.fail("bad")
    step = ended(h, "completed")
    assert (dispatched(step), h.status("after")) == (["pay~undo"], "unreached")
    undo_all(h)
    assert undone(h) == ["pay", "done"]


def test_a_child_that_fails_while_the_run_stops_is_not_asked_for_again(saga: Saga) -> None:
    h = with_child(saga)
    found(h, created=True)
    h.cancel("enough")
    h.fail("bad")
    assert "RetryTask" not in kinds(ended(h, "failed"))
    assert undo_all(h).status == "canceled"
    assert undone(h) == ["done"]


def test_a_child_that_is_found_only_now_is_asked_to_end_too(saga: Saga) -> None:
    h = with_child(saga)
    assert of(h.cancel(), CancelChild) == []
    h.fail("bad")
    assert h.status("pay") == "pending"
    asked = of(found(h, created=True), CancelChild)
    assert [order.awaited for order in asked] == [True]
    ended(h, "canceled")
    assert undone(h) == ["done"]


def test_somebody_else_s_run_is_let_go_at_once(saga: Saga) -> None:
    h = with_child(saga)
    found(h, created=False)
    step = h.cancel()
    assert [order.awaited for order in of(step, CancelChild)] == [False]
    assert h.status("pay") == "canceled"


def test_the_time_of_grace_is_for_attempts_and_children_are_awaited_beyond_it(saga: Saga) -> None:
    h = with_child(saga)
    found(h, created=True)
    h.cancel()
    step = h.fire(GRACE)
    assert of(step, CancelTasks)[0].nodes == ("bad",)
    assert (h.status("pay"), undone(h)) == ("pending", [])
    ended(h, "canceled")
    assert undone(h) == ["done"]
