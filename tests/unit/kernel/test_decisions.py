"""The machine as a whole: events in, one transition or an error out, the same every time."""

from __future__ import annotations

import msgspec
import pytest

from perdure.kernel.actions import Claimed, CreateTask, Transition
from perdure.kernel.events import NodeCompleted, RunStarted
from perdure.kernel.fold import fold
from perdure.kernel.machine import GraphMachine
from perdure.kernel.run import Run
from perdure.model.errors import InvalidRequest, StoreError
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, cond, edge, fork, join, sw, task
from tests.unit.kernel.harness import NEW_YEAR, Harness, kinds, of, plan_of, shown, text


@pytest.mark.rule("G-3", "G-2")
def test_anything_but_a_known_event_is_an_invalid_request(draw: Draw) -> None:
    h = draw([task("a")], [])
    h.start()
    for event in (object(), None, "NodeCompleted", Transition(0)):
        with pytest.raises(InvalidRequest, match="unknown event"):
            h.apply(event)  # type: ignore[arg-type]


@pytest.mark.rule("G-3")
def test_a_subclass_of_an_event_is_not_an_event(draw: Draw) -> None:
    class Forged(RunStarted, frozen=True):
        pass

    with pytest.raises(InvalidRequest, match="unknown event Forged"):
        draw([task("a")], []).apply(Forged("r1"))


@pytest.mark.rule("G-5")
def test_actions_stand_in_the_order_in_which_they_were_decided(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), task("b")], [edge("f", "a"), edge("f", "b")])
    start = h.start()
    assert kinds(start) == [
        *["OpenRun", "CreateTask", "CreateTask", "DispatchTask", "CreateTask", "DispatchTask"]
    ]


@pytest.mark.rule("G-5")
def test_a_decision_sees_what_was_decided_before_it_in_the_same_event(draw: Draw) -> None:
    # j is reached through f's two edges at once: the second must see what the first created
    h = draw([fork("f"), fork("a"), fork("b"), join("j"), task("z")],
             [*chain("f", "a", "j", "z"), *chain("f", "b", "j")])  # fmt: skip
    assert [t.node for t in of(h.start(), CreateTask)] == ["f", "a", "b", "j", "z"]


@pytest.mark.rule("G-6", "G-24", "G-26")
def test_folding_the_journal_gives_the_snapshot_of_the_machine(draw: Draw) -> None:
    h = draw([task("a", retry={"attempts": 3}), sw("s"), task("b"), task("c")],
             [edge("a", "s"), cond("s", "b", "true"), cond("s", "c", "false")])  # fmt: skip
    h.start()
    h.advance(1)
    h.fail("a")
    h.advance(1)
    h.complete("a")
    h.complete("b")
    assert h.folded() == h.run
    assert [h.nodes[n].completed_no for n in ("a", "s", "b", "c")] == [1, 2, 3, 0]
    assert (h.nodes["a"].attempt, h.nodes["s"].attempt) == (1, 0)


@pytest.mark.rule("G-6")
def test_progress_forgets_crashes_live_as_in_folding() -> None:
    plan = plan_of([task("a"), task("b")], chain("a", "b"))
    h = Harness(plan, live=True)
    h.start()
    for worker in ("w1", "w2"):
        h.journal.append(msgspec.json.encode(Transition(h.now, [Claimed(worker)])))
    h.reload()
    assert h.run.crashes == 2
    assert h.apply(NodeCompleted("x", "a", 0, text({}))).ignored
    assert h.run.crashes == 2
    h.complete("a")
    assert h.run.crashes == 0


@pytest.mark.rule("G-7", "D-10")
def test_an_event_that_ends_in_an_error_changes_nothing() -> None:
    h = Harness(plan_of([fork("f"), task("a"), task("b")], [edge("f", "a"), edge("f", "b")]))
    calls = 0

    def broken_ids() -> str:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("no more ids")
        return f"x{calls}"

    deps = msgspec.structs.replace(h.deps, new_id=broken_ids)
    machine = GraphMachine(h.plan, Run(), deps)
    before = shown(machine.run)
    with pytest.raises(RuntimeError, match="no more ids"):
        next(machine.apply(RunStarted("r1")))
    assert shown(machine.run) == before


@pytest.mark.rule("G-9")
def test_the_two_kinds_of_error_are_told_apart_by_class() -> None:
    assert not issubclass(InvalidRequest, StoreError)
    assert not issubclass(StoreError, InvalidRequest)
    cause = OSError("disk")
    error = StoreError("loading failed")
    error.__cause__ = cause
    h = Harness(plan_of([task("a"), task("b"), task("c", "{{tasks.a.output}}")],
                        chain("a", "b", "c")))  # fmt: skip
    h.start()
    h.complete("a")
    h.load_error = error
    with pytest.raises(StoreError) as caught:
        h.complete("b")
    assert caught.value.__cause__ is cause


@pytest.mark.rule("G-1", "G-2")
def test_the_same_snapshot_and_event_give_the_same_transition_byte_for_byte() -> None:
    def decide() -> bytes:
        h = Harness(plan_of([task("a"), fork("f"), task("b"), task("c")],
                            [*chain("a", "f", "b"), edge("f", "c")]))  # fmt: skip
        h.start({"n": 1})
        h.complete("a", {"m": [1, 2]})
        return b"\n".join(h.journal)

    assert decide() == decide()


@pytest.mark.rule("G-103", "G-1")
def test_a_decision_made_again_after_a_load_draws_the_same_ids() -> None:
    nodes = [task("a"), task("b"), fork("f"), task("x"), task("y", "{{tasks.a.output}}"), task("z")]
    edges = [*chain("a", "b", "f", "x"), edge("f", "y"), edge("f", "z")]
    journals = []
    for live in (True, False):
        h = Harness(plan_of(nodes, edges), live=live)
        h.start()
        h.complete("a")
        h.complete("b")
        journals.append(h.journal)
        assert bool(h.loads) is not live
    assert journals[0] == journals[1]


@pytest.mark.rule("G-103")
def test_ids_drawn_for_a_decision_given_up_are_used_by_what_comes_next() -> None:
    nodes = [fork("f"), task("p"), task("q"), fork("g"), task("x"), task("y", "{{tasks.p.output}}")]
    edges = [*chain("f", "p"), *chain("f", "q", "g", "x"), *chain("p", "y"), edge("g", "y")]
    h = Harness(plan_of(nodes, edges), live=True)
    h.start()
    h.complete("p")
    h.reload()
    h.load_error = StoreError("down")
    with pytest.raises(StoreError):
        h.complete("q")
    h.load_error = None
    assert [t.task for t in of(h.complete("q"), CreateTask)] == ["t004", "t005", "t006"]


@pytest.mark.rule("G-103")
def test_task_ids_are_taken_in_the_order_tasks_are_created(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), task("b")], [edge("f", "a"), edge("f", "b")])
    assert [t.task for t in of(h.start(), CreateTask)] == ["t001", "t002", "t003"]


@pytest.mark.rule("G-1")
def test_time_never_goes_back_whatever_the_clock_says(draw: Draw) -> None:
    h = draw([task("a"), task("b", "{{string(system.now)}}")], chain("a", "b"))
    h.advance(100)
    first = h.start()
    h.advance(-3600)
    second = h.complete("a")
    assert (first.at, second.at) == (NEW_YEAR + 100_000_000, NEW_YEAR + 100_000_000)
    h.advance(7200)
    assert h.complete("b").at == h.now


@pytest.mark.rule("G-4", "G-10")
def test_a_live_machine_and_one_built_anew_decide_alike() -> None:
    nodes = [task("p"), sw("s"), task("hi"), task("lo"), task("m", "{{tasks.p.output.n}}")]
    edges = [
        *[edge("p", "s"), cond("s", "hi", "tasks.p.output.n > 1"), cond("s", "lo", "true")],
        *[edge("hi", "m"), edge("lo", "m")],
    ]
    both = [Harness(plan_of(nodes, edges), live=live) for live in (True, False)]
    for h in both:
        h.start()
        h.complete("p", {"n": 5})
        h.complete("hi")
        h.complete("lo")
        h.complete("m")
    assert both[0].journal == both[1].journal


@pytest.mark.rule("G-102")
def test_folding_a_journal_without_newer_fields_still_works() -> None:
    plan = plan_of([task("a"), task("b")], chain("a", "b"))
    row = (
        b'{"at":5,"do":[{"do":"OpenRun","definition":"g","id":"r","version":"1","hash":"h",'
        b'"python":"3.11"},{"do":"CreateTask","task":"t1","node":"a","status":"pending"}]}'
    )
    h = Harness(plan, live=True)
    h.journal.append(row)
    h.reload()
    assert (h.run.status, h.status("a"), h.run.active) == ("running", "pending", 1)
    assert kinds(h.complete("a")) == ["CompleteTask", "CreateTask", "DispatchTask"]


@pytest.mark.rule("G-6")
def test_an_empty_journal_folds_to_a_run_that_has_not_started() -> None:
    assert fold([]) == Run()
