"""A run that ends otherwise than well undoes what it did, the last completed first."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from perdure.kernel.actions import BeginCompensation, CompensateTask, CreateTask, DispatchTask
from perdure.kernel.events import AttemptGivenUp, DeadlineReached, NodeCompleted, RunCancelled
from perdure.kernel.plan import PlannedUndo
from perdure.kernel.run import COMPENSATING
from perdure.model.durations import SECOND
from perdure.model.errors import RunFinished
from perdure.model.failure import FailureRecord
from perdure.model.policy import RetryPolicy
from tests.unit.kernel.drawing import edge, fork, join, task, wait
from tests.unit.kernel.harness import NEW_YEAR, dispatched, finish, kinds, of, text
from tests.unit.kernel.undo.drawing import (
    Saga,
    deadline,
    give_up,
    line,
    side_by_side,
    under_way,
    undo,
    undo_all,
    undone,
)


@pytest.mark.rule("S-14", "S-15", "S-17", "D-18")
def test_a_failure_undoes_what_succeeded_in_reverse_one_at_a_time(saga: Saga) -> None:
    h = line(saga, "a", "b", "c", "d")
    h.start()
    h.complete("a")
    h.complete("b")
    step = h.fail("c", "no stock")
    assert kinds(step) == ["FailTask", "BeginCompensation", "CreateTask", "DispatchTask"]
    (begun,) = of(step, BeginCompensation)
    assert (begun.reason, begun.failure.message, begun.unknown) == (
        "failure", "node c failed: no stock", (),
    )  # fmt: skip
    assert (dispatched(step), h.run.phase, h.run.status) == (["b~undo"], COMPENSATING, "running")
    step = undo(h)
    assert kinds(step) == ["CompleteTask", "CompensateTask", "CreateTask", "DispatchTask"]
    assert (h.status("b"), h.status("a"), dispatched(step)) == (
        "compensated", "completed", ["a~undo"],
    )  # fmt: skip
    end = finish(undo(h))
    assert [h.status(n) for n in "abcd"] == ["compensated", "compensated", "failed", "unreached"]
    assert (end.status, end.failure.kind, end.failure.message) == (
        "failed", "Error", "node c failed: no stock",
    )  # fmt: skip
    assert end.failure.details == {
        "node": "c", "attempt": 1, "failed": 1, "details": None,
        "undone": ["b", "a"], "undo_failed": [], "unknown": [],
    }  # fmt: skip


@pytest.mark.rule("D-18")
def test_the_order_is_that_of_completion_and_not_of_the_document(saga: Saga) -> None:
    h = saga(
        [fork("f"), task("a"), task("b"), task("c"), join("j"), task("z")],
        [*(edge("f", n) for n in "abc"), *(edge(n, "j") for n in "abc"), edge("j", "z")],
        undo=["a", "b", "c"],
    )
    h.start()
    for node in ("b", "c", "a"):
        h.complete(node)
    h.fail("z")
    undo_all(h)
    assert undone(h) == ["a", "c", "b"]


@pytest.mark.rule("S-15")
def test_what_has_no_undo_was_skipped_or_never_ran_is_passed_over(saga: Saga) -> None:
    h = line(saga, "a", "b", "c", "d", undo=["a", "d"])
    h.start()
    for node in ("a", "b"):
        h.complete(node)
    h.fail("c")
    undo_all(h)
    assert undone(h) == ["a"]
    assert (h.status("b"), h.status("d")) == ("completed", "unreached")


def test_with_nothing_to_undo_the_run_just_fails(saga: Saga) -> None:
    h = line(saga, "a", "b", undo=["b"])
    h.start()
    h.complete("a")
    assert kinds(h.fail("b")) == ["FailTask", "FinishRun"]


def test_a_run_that_succeeds_undoes_nothing(saga: Saga) -> None:
    h = line(saga, "a", "b")
    h.start()
    h.complete("a")
    assert kinds(h.complete("b")) == ["CompleteTask", "FinishRun"]
    assert h.run.status == "completed"


@pytest.mark.rule("S-16")
def test_an_undo_that_fails_keeps_no_other_from_being_made(saga: Saga) -> None:
    h = line(saga, "a", "b", "c")
    h.start()
    h.complete("a")
    h.complete("b")
    h.fail("c", "original")
    step = h.fail("b~undo", "the bank is closed")
    assert kinds(step) == ["FailTask", "CreateTask", "DispatchTask"]
    assert (dispatched(step), h.status("b")) == (["a~undo"], "completed")
    end = finish(undo(h))
    assert (h.status("a"), h.status("b"), h.status("b~undo")) == (
        "compensated", "completed", "failed",
    )  # fmt: skip
    assert (end.status, end.failure.message) == ("failed", "node c failed: original")
    assert end.failure.details["undone"] == ["a"]
    assert end.failure.details["undo_failed"] == ["b"]


@pytest.mark.rule("SX-2")
def test_an_undo_is_tried_again_by_its_own_policy_alone(saga: Saga) -> None:
    policy = RetryPolicy(attempts=3, initial=5 * SECOND)
    h = line(saga, "a", "b", undo={"a": PlannedUndo(policy, timeout=7, code="the code")})
    h.start()
    h.complete("a")
    h.fail("b")
    step = h.fail("a~undo")
    assert kinds(step) == ["RetryTask"]
    assert h.nodes["a~undo"].not_before == NEW_YEAR + 5 * SECOND
    assert kinds(h.fail("a~undo")) == ["RetryTask"]
    assert kinds(h.fail("a~undo")) == ["FailTask", "FinishRun"]
    how = h.machine.handlings["a~undo"]
    assert (how.type, how.timeout, how.step, how.around, how.reads) == (
        "SAGA", 7, "the code", True, None,
    )  # fmt: skip


def test_a_permanent_failure_ends_the_attempts_of_an_undo(saga: Saga) -> None:
    h = line(saga, "a", "b", undo={"a": PlannedUndo(RetryPolicy(attempts=3))})
    h.start()
    h.complete("a")
    h.fail("b")
    failure = FailureRecord("Gone", "no such charge", permanent=True)
    assert kinds(h.fail("a~undo", failure)) == ["FailTask", "FinishRun"]


def test_an_undo_is_given_nothing_and_queued_where_its_node_was(saga: Saga) -> None:
    h = line(saga, "a", "b", undo=["a"])
    queued = replace(h.plan.nodes["a"], queue="cards")
    h.reload(replace(h.plan, nodes={**h.plan.nodes, "a": queued}))
    h.start()
    h.complete("a")
    step = h.fail("b")
    (made,) = of(step, CreateTask)
    (order,) = of(step, DispatchTask)
    assert (bytes(made.input), order.queue, order.attempt) == (b"null", "cards", 0)


@pytest.mark.rule("S-17", "SX-9")
def test_an_undo_counts_once(saga: Saga) -> None:
    h = line(saga, "a", "b", "c")
    h.start()
    h.complete("a")
    h.complete("b")
    h.fail("c")
    report = NodeCompleted(h.nodes["b~undo"].task, "b~undo", 0, text(None))
    assert not h.apply(report).ignored
    assert h.apply(report).ignored
    undo(h)
    assert h.apply(report).ignored
    assert h.apply(NodeCompleted(h.nodes["b"].task, "b", 0, text(1))).ignored
    assert (h.status("b"), h.run.status) == ("compensated", "failed")


@pytest.mark.rule("SX-3")
def test_nothing_that_comes_while_undoing_changes_its_course(saga: Saga) -> None:
    h = line(saga, "a", "b", "c")
    h.start(deadline=NEW_YEAR + 600 * SECOND)
    h.complete("a")
    h.complete("b")
    h.fail("c", "original")
    assert "undoes what it did already: node c failed" in (h.cancel("again").ignored or "")
    assert "undoes what it did already" in (deadline(h).ignored or "")
    assert give_up(h, "b~undo").ignored
    assert not h.signal("news").signal_delivered
    undo(h)
    assert finish(undo(h)).failure.message == "node c failed: original"
    with pytest.raises(RunFinished):
        h.cancel()
    assert h.apply(DeadlineReached()).ignored == "the run is already failed"


def test_pausing_holds_effects_and_no_decision(saga: Saga) -> None:
    h = line(saga, "a", "b")
    h.start()
    h.complete("a")
    h.pause()
    assert dispatched(h.fail("b")) == ["a~undo"]
    h.unpause()
    assert finish(undo(h)).status == "failed"


class Broken:
    """An output that cannot be made."""

    constant, secrets = False, dict[str, str]()

    def render(self, scope: object) -> object:
        raise ValueError("no such field")


def test_an_output_that_cannot_be_made_undoes_the_run(saga: Saga) -> None:
    h = line(saga, "a", output=Broken())
    h.start()
    assert dispatched(h.complete("a")) == ["a~undo"]
    end = finish(undo(h))
    assert (end.failure.kind, end.failure.details["undone"]) == ("output", ["a"])


def test_a_run_that_is_blocked_undoes_what_it_did(saga: Saga) -> None:
    h = side_by_side(saga, "a", wait("w", duration="1h"), "b", undo=["b"])
    h.start()
    h.complete("b")
    h.fail("a")
    undo(h)
    assert h.status("w") == "canceled"
    h.retry("a")
    h.complete("a")
    assert h.status("b") == "pending"
    h.complete("b")
    step = h.recorded()[-1]
    assert dispatched(step) == ["b~undo"]
    assert finish(undo(h)).failure.message == "blocked: w was canceled and not retried"


@pytest.mark.rule("D-18")
@pytest.mark.parametrize("only", ["failure", "timeout", "cancel"])
def test_undo_on_narrows_the_ends_after_which_is_undone(saga: Saga, only: str) -> None:
    def begun(reason: str) -> list[str]:
        h = side_by_side(saga, "a", "b", undo_on=[only])
        h.start(deadline=NEW_YEAR + 600 * SECOND)
        h.complete("a")
        if reason == "failure":
            h.fail("b")
        elif reason == "cancel":
            h.apply(RunCancelled())
        else:
            deadline(h)
        if reason == only != "failure":
            assert h.status("b") == "pending"  # awaited
            h.fail("b")
        return undone(h)

    for reason in ("failure", "timeout", "cancel"):
        assert begun(reason) == (["a"] if reason == only else [])


def test_an_attempt_without_an_outcome_goes_on_where_nothing_stops(saga: Saga) -> None:
    h = line(saga, "a")
    h.start()
    step = h.apply(AttemptGivenUp(h.nodes["a"].task, "a", 0))
    assert (step.ignored or "").startswith("the run is not to stop")


def test_a_journal_that_ends_between_two_undos_is_gone_on_with(saga: Saga) -> None:
    h = line(saga, "a", "b", "c", "d")
    h.start()
    for node in ("a", "b", "c"):
        h.complete(node)
    h.fail("d")
    undo(h)
    h.reload()
    assert under_way(h) == "b~undo"
    assert of(undo(h), CompensateTask)[0].node == "b"
    h.reload()
    undo_all(h)
    assert undone(h) == ["c", "b", "a"]
