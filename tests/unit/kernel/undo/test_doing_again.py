"""A run that was undone is retried: what was undone is to be done again."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import ReopenRun
from perdure.kernel.run import FORWARD, GRACE
from perdure.model.errors import InvalidRequest
from tests.unit.kernel.drawing import chain, edge, fork, task
from tests.unit.kernel.harness import Harness, dispatched, finish, of
from tests.unit.kernel.undo.drawing import Saga, give_up, line, side_by_side, undo_all, undone


def undone_run(saga: Saga) -> Harness:
    """a → b → c, of which c failed and the others were undone."""
    h = line(saga, "a", "b", "c")
    h.start()
    h.complete("a")
    h.complete("b")
    h.fail("c")
    undo_all(h)
    return h


@pytest.mark.rule("D-8", "G-91", "SX-9")
def test_a_retry_begins_again_at_what_was_undone(saga: Saga) -> None:
    h = undone_run(saga)
    step = h.retry()
    assert dispatched(step) == ["a"]
    assert set(of(step, ReopenRun)[0].reset) == {"a", "b", "c", "a~undo", "b~undo"}
    assert (list(h.nodes), h.run.failures) == (["a"], ())
    assert (h.run.phase, h.run.stopping, h.run.reason) == (FORWARD, None, "")
    for node in "abc":
        step = h.complete(node)
    assert finish(step).status == "completed"


@pytest.mark.rule("D-8")
def test_a_retry_from_a_node_runs_what_it_rests_on_again(saga: Saga) -> None:
    h = undone_run(saga)
    assert dispatched(h.retry("c")) == ["a"]
    h.complete("a")
    assert dispatched(h.complete("b")) == ["c"]


@pytest.mark.rule("D-8", "D-18")
def test_what_failed_again_is_undone_again(saga: Saga) -> None:
    h = undone_run(saga)
    h.retry()
    h.complete("a")
    h.complete("b")
    h.fail("c", "again")
    end = undo_all(h)
    assert undone(h) == ["b", "a", "b", "a"]
    assert end.failure.message == "node c failed: again"


@pytest.mark.rule("D-8")
def test_what_could_not_be_undone_stays_done_and_is_undone_with_the_next_failure(
    saga: Saga,
) -> None:
    h = saga([fork("f"), task("a"), task("b")], [edge("f", "a"), edge("f", "b")], undo=["a"])
    h.start()
    h.complete("a")
    h.fail("b")
    h.fail("a~undo", "closed")
    assert h.run.status == "failed"
    assert dispatched(h.retry()) == ["b"]
    assert (h.status("a"), h.status("a~undo")) == ("completed", "unreached")
    h.fail("b")
    assert undo_all(h).failure.details["undone"] == ["a"]


@pytest.mark.rule("D-8")
def test_what_could_not_be_undone_is_not_done_again_unless_somebody_says_so(saga: Saga) -> None:
    h = line(saga, "a", "b", "c")
    h.start()
    h.complete("a")
    h.complete("b")
    h.fail("c")
    h.fail("b~undo", "closed")
    undo_all(h)
    with pytest.raises(InvalidRequest, match="what node b did could not be undone, and would be"):
        h.retry()
    assert (h.run.status, h.status("b")) == ("failed", "completed")
    assert dispatched(h.retry("c")) == ["a"]
    assert h.status("b") == "unreached"


@pytest.mark.rule("D-8", "S-15")
def test_a_retry_completes_what_was_given_up(saga: Saga) -> None:
    h = side_by_side(saga, "a", "b", "c")
    h.start()
    h.complete("a")
    h.cancel()
    h.fire(GRACE)
    end = undo_all(h)
    assert (end.status, end.failure.details["unknown"]) == ("canceled", ["b", "c"])
    step = h.retry()
    assert sorted(dispatched(step)) == ["a", "b", "c"]
    assert (h.run.unknown, h.status(GRACE)) == ((), "unreached")
    h.complete("a")
    h.cancel()
    give_up(h, "b")
    give_up(h, "c", begun=False)
    assert undo_all(h).failure.details["unknown"] == ["b"]


@pytest.mark.rule("D-8")
def test_a_run_that_was_stopped_between_its_nodes_goes_on_when_it_is_retried(saga: Saga) -> None:
    h = line(saga, "a", "b", undo=["b"])
    h.start()
    h.cancel()
    assert finish(h.complete("a")).status == "canceled"
    assert dispatched(h.retry()) == ["b"]
    h.cancel()
    h.complete("b")
    h.fail("b~undo")
    assert (h.run.status, h.status("b")) == ("canceled", "completed")
    assert finish(h.retry()).status == "completed"
    with pytest.raises(InvalidRequest, match="has failed in this run"):
        h.retry()


@pytest.mark.rule("D-8")
def test_a_node_that_has_no_undo_stays_unless_it_stands_behind_one(saga: Saga) -> None:
    h = saga(
        [fork("f"), task("a"), task("x"), task("y"), task("bad")],
        [*chain("f", "a", "x"), edge("f", "y"), edge("x", "bad"), edge("y", "bad")],
        undo=["a"],
    )
    h.start()
    for node in ("a", "y", "x"):
        h.complete(node)
    h.fail("bad")
    undo_all(h)
    assert dispatched(h.retry()) == ["a"]
    assert (h.status("y"), h.status("x")) == ("completed", "unreached")
