"""An attempt of which nobody knows what it did never counts as one that did nothing."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import BeginCompensation, CancelTasks, FailTask, RetryTask
from perdure.kernel.events import NodeFailed
from perdure.kernel.plan import PlannedUndo
from perdure.model.durations import SECOND
from perdure.model.failure import FailureRecord
from tests.unit.kernel.drawing import chain, edge, fork, task
from tests.unit.kernel.harness import NEW_YEAR, Harness, Transition, finish, kinds, of
from tests.unit.kernel.undo.drawing import (
    Saga,
    deadline,
    give_up,
    line,
    side_by_side,
    undo,
    undo_all,
    undone,
)

LATE = FailureRecord("workflow.timeout", "it took longer than 5 s")
TWICE = {"attempts": 2, "initial": 10}


def fail(h: Harness, node: str, *, unknown: bool | None) -> Transition:
    """The attempt fails with an error of the step's own; the engine says what is known of it."""
    state = h.nodes[node]
    failure = FailureRecord("Error", "declined", permanent=unknown is True)
    return h.apply(NodeFailed(state.task, node, state.attempt, failure, unknown))


def told(h: Harness) -> tuple[list[str], list[str]]:
    """What was undone in the end, and of what nobody knows what it did."""
    details = undo_all(h).failure.details
    return details["undone"], details["unknown"]


@pytest.mark.rule("S-15", "D-18")
@pytest.mark.parametrize("kind", ["workflow.timeout", "workflow.canceled", "CancelledError"])
def test_a_last_attempt_that_timed_out_is_undone_and_named(saga: Saga, kind: str) -> None:
    h = line(saga, "a", "b")
    h.start()
    h.complete("a")
    step = h.fail("b", FailureRecord(kind, "no answer"))
    assert of(step, FailTask)[0].unknown
    assert of(step, BeginCompensation)[0].unknown == ("b",)
    assert told(h) == (["b", "a"], ["b"])
    assert (h.status("b"), h.run.failures[0][0]) == ("compensated", "b")


@pytest.mark.rule("S-15", "D-18")
def test_the_engine_may_say_that_nobody_knows_and_that_all_is_known(saga: Saga) -> None:
    for unknown, undone_then in ((True, ["b", "a"]), (False, ["a"]), (None, ["a"])):
        h = line(saga, "a", "b")
        h.start()
        h.complete("a")
        fail(h, "b", unknown=unknown)
        assert told(h) == (undone_then, ["b"] if unknown else [])
    h = line(saga, "a", "b")
    h.start()
    h.complete("a")
    state = h.nodes["b"]
    h.apply(NodeFailed(state.task, "b", 0, LATE, unknown=False))
    assert told(h) == (["a"], [])


@pytest.mark.rule("S-15")
def test_a_step_may_say_that_such_an_end_is_not_undone(saga: Saga) -> None:
    h = line(saga, "a", "b", undo={"a": PlannedUndo(), "b": PlannedUndo(unknown=False)})
    h.start()
    h.complete("a")
    h.fail("b", LATE)
    assert told(h) == (["a"], ["b"])
    assert h.status("b") == "failed"


@pytest.mark.rule("S-15", "D-18")
@pytest.mark.parametrize("how", ["declined", "cancel", "deadline", "drain", "never begun"])
def test_an_attempt_nobody_knows_of_is_remembered_until_one_completes(saga: Saga, how: str) -> None:
    h = side_by_side(saga, "a", task("b", retry=TWICE), "bad")
    h.start(deadline=NEW_YEAR + 600 * SECOND)
    h.complete("a")
    (again,) = of(h.fail("b", LATE), RetryTask)
    assert again.unknown
    assert h.nodes["b"].unknown
    if how == "declined":
        h.advance(10)
        (last,) = of(fail(h, "b", unknown=None), FailTask)
        assert last.unknown
        h.complete("bad")
    elif how == "drain":
        h.fail("bad")
    elif how == "never begun":
        h.advance(10)
        h.cancel()
        give_up(h, "b", begun=False)
        h.complete("bad")
    else:
        h.advance(590)
        h.cancel() if how == "cancel" else deadline(h)
        give_up(h, "b", begun=False)
        h.complete("bad")
    undone_then, unknown = told(h)
    assert unknown == ["b"]
    assert "b" in undone_then
    assert "a" in undone_then


@pytest.mark.rule("S-15", "D-18")
@pytest.mark.parametrize("how", ["cancel", "drain"])
def test_a_task_that_waits_for_its_next_attempt_ends_as_its_last_one_did(
    saga: Saga, how: str
) -> None:
    h = side_by_side(
        saga, "a", task("late", retry=TWICE), task("sure", retry=TWICE), "bad", undo=["late"],
    )  # fmt: skip
    h.start()
    h.fail("late", LATE)
    h.fail("sure", "declined")
    step = h.cancel() if how == "cancel" else h.fail("bad")
    orders = of(step, CancelTasks)
    assert [(order.nodes, order.unknown) for order in orders] == [
        (("sure",), False), (("late",), True),
    ]  # fmt: skip
    assert {order.status for order in orders} == {"canceled"}


@pytest.mark.rule("S-15")
def test_an_attempt_that_completes_ends_the_doubt(saga: Saga) -> None:
    h = side_by_side(saga, task("b", retry=TWICE), "bad")
    h.start()
    h.fail("b", LATE)
    h.advance(10)
    h.complete("b")
    h.fail("bad")
    assert told(h) == (["b"], [])


@pytest.mark.rule("D-18")
def test_what_may_have_been_done_last_is_undone_first(saga: Saga) -> None:
    h = side_by_side(saga, "a", "b", "c", on_failure="continue")
    h.start()
    h.complete("a")
    h.fail("b", LATE)
    h.complete("c")
    assert told(h) == (["c", "b", "a"], ["b"])


@pytest.mark.rule("D-8")
def test_a_retry_forgets_only_of_what_it_does_again(saga: Saga) -> None:
    h = side_by_side(
        saga, "a", "b", on_failure="continue",
        undo={"a": PlannedUndo(), "b": PlannedUndo(unknown=False)},
    )  # fmt: skip
    h.start()
    h.fail("b", LATE)
    h.fail("a", LATE)
    assert told(h) == (["a"], ["b", "a"])
    h.retry("a")
    h.fail("a", "declined")
    assert finish(h.recorded()[-1]).failure.details["unknown"] == ["b"]
    h.retry()
    h.complete("a")
    assert kinds(h.complete("b"))[-1] == "FinishRun"
    assert (h.run.status, h.run.unknown) == ("completed", ())


@pytest.mark.rule("D-8", "D-18")
def test_what_could_not_be_undone_is_undone_again_after_a_retry(saga: Saga) -> None:
    h = side_by_side(saga, "a", "b")
    h.start()
    h.cancel()
    give_up(h, "b")
    give_up(h, "a", begun=False)
    h.fail("b~undo")
    assert (h.run.status, h.status("b")) == ("canceled", "canceled")
    h.retry("a")
    h.fail("a", "declined")
    undo(h)
    assert (h.status("b"), undone(h)) == ("compensated", ["b", "b"])


@pytest.mark.rule("S-15", "D-18")
@pytest.mark.parametrize("how", ["failure", "cancel", "deadline"])
def test_where_nothing_is_undone_what_nobody_knows_is_named_all_the_same(
    saga: Saga, how: str
) -> None:
    only = "cancel" if how == "failure" else "failure"
    h = saga(
        [fork("f"), task("late"), task("run"), task("back", retry=TWICE), task("after")],
        [edge("f", "late"), edge("f", "run"), *chain("f", "back", "after")],
        undo=["late"], undo_on=[only], on_failure="cancel" if how == "failure" else "continue",
    )  # fmt: skip
    h.start(deadline=NEW_YEAR + 600 * SECOND)
    h.fail("back", "declined")
    step = h.fail("late", LATE)
    if how == "cancel":
        step = h.cancel()
    elif how == "deadline":
        step = deadline(h)
    unknown = finish(step).failure.details["unknown"]
    # Nothing is awaited. By the deadline, what waited for its time may have begun.
    assert sorted(unknown) == [*(["back"] if how == "deadline" else []), "late", "run"]
    assert undone(h) == []


def test_a_graph_without_undos_records_what_it_always_did(saga: Saga) -> None:
    h = side_by_side(saga, task("a", retry=TWICE), undo=[])
    h.start()
    assert not of(h.fail("a", LATE), RetryTask)[0].unknown
    h.advance(10)
    step = h.fail("a", LATE)
    assert not of(step, FailTask)[0].unknown
    assert finish(step).failure.details == {
        "node": "a", "attempt": 2, "failed": 1, "details": None,
    }  # fmt: skip
