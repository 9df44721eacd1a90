"""Runs that were made for one which is to stop are asked to end, and awaited, before it undoes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from perdure.codec.values import JsonCodec
from perdure.kernel.actions import CancelChild, CancelTasks
from perdure.kernel.child_ids import call_id
from perdure.kernel.events import ChildFinished, ChildStarted
from perdure.kernel.run import FORWARD, GRACE
from perdure.model.errors import InvalidRequest
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


#: What a run says that undid all it did; that could not; of which something is not known.
CLEAN = {"undone": ["x", "y"], "undo_failed": [], "unknown": ["y"]}
STUCK = {"undone": ["x"], "undo_failed": ["y"], "unknown": []}
UNSURE = {"undone": ["x"], "undo_failed": [], "unknown": ["y"]}
NOTHING_DONE: dict[str, list[str]] = {"undone": [], "undo_failed": [], "unknown": []}


def ended(h: Harness, status: Any, details: Any = CLEAN, kind: str = "Boom") -> Transition:
    failure = FailureRecord(kind, "it broke", details=details) if status != "completed" else None
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


@pytest.mark.rule("D-18", "S-15")
@pytest.mark.parametrize(
    ("status", "details", "kind", "unknown"),
    [
        ("canceled", CLEAN, "Boom", False),
        ("canceled", NOTHING_DONE, "Boom", False),
        ("canceled", STUCK, "Boom", True),
        ("canceled", UNSURE, "Boom", True),
        ("canceled", None, "Boom", True),  # code, a graph, or a saga that does not undo then
        ("canceled", {"unknown": "of a user"}, "Boom", True),
        ("failed", None, "Boom", False),  # it failed of its own: what it left is its own to undo
        ("failed", STUCK, "Boom", True),
        ("failed", UNSURE, "Boom", True),
        ("failed", None, "workflow.timeout", True),
        ("failed", CLEAN, "workflow.timeout", False),
    ],
)
@pytest.mark.parametrize("asked", [True, False])
def test_a_child_did_nothing_only_where_it_says_that_nothing_is_left(
    saga: Saga, status: str, details: Any, kind: str, unknown: bool, asked: bool
) -> None:
    h = with_child(saga)
    found(h, created=True)
    if asked:
        h.cancel()
        h.fail("bad")
        ended(h, status, details, kind)
    else:
        ended(h, status, details, kind)
        h.complete("bad")
    end = undo_all(h)
    assert undone(h) == (["pay", "done"] if unknown else ["done"])
    assert end.failure.details["unknown"] == (["pay"] if unknown else [])


class Unreading(JsonCodec):
    """Reads no value of a child."""

    def sealed(self, data: Raw, /) -> Raw:
        raise InvalidRequest("another key")


def test_a_child_whose_output_cannot_be_read_did_what_it_was_asked_for(saga: Saga) -> None:
    h = with_child(saga, typed=True)
    found(h, created=True)
    h.complete("bad")
    h.deps = replace(h.deps, codec=Unreading())
    h.reload()
    ended(h, "completed")
    assert dispatched(h.recorded()[-1]) == ["pay~undo"]
    assert undo_all(h).failure.details["unknown"] == ["pay"]


def test_what_was_perhaps_asked_for_and_never_heard_of_may_have_been_done(saga: Saga) -> None:
    h = with_child(saga)
    h.pause()
    (order,) = of(h.cancel(), CancelTasks)
    assert (order.nodes, order.unknown) == (("pay",), True)
