"""SWITCH: decided once, recorded, and never asked again."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from perdure.kernel.actions import CreateTask, OpenRun, Transition
from perdure.kernel.fold import fold
from perdure.kernel.machine import GraphMachine
from perdure.model.errors import InvalidRequest
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, cond, edge, fork, join, otherwise, sw, task
from tests.unit.kernel.harness import (
    Harness,
    created,
    dispatched,
    failure_of,
    finish,
    kinds,
    of,
    plan_of,
    text,
)


@pytest.mark.rule("G-61")
def test_a_join_uses_the_recorded_decision(draw: Draw) -> None:
    h = draw(
        [fork("f"), sw("s"), task("slow"), task("x"), task("j")],
        [
            *[edge("f", "s"), edge("f", "slow"), cond("s", "x", "input.flag")],
            *[edge("x", "j"), edge("slow", "j")],
        ],
    )
    assert dispatched(h.start({"flag": True})) == ["slow", "x"]
    flip_input(h, {"flag": False})  # asked again, the switch would now leave x out
    assert dispatched(h.complete("slow")) == []
    assert dispatched(h.complete("x")) == ["j"]


@pytest.mark.rule("G-60", "G-61")
def test_a_recorded_choice_of_nothing_is_not_reconsidered(draw: Draw) -> None:
    h = draw(
        [fork("f"), sw("s"), task("slow"), sw("t"), task("j")],
        [
            *[edge("f", "s"), *chain("f", "slow", "t")],
            *[cond("s", "j", "input.flag"), cond("t", "j", "false")],
        ],
    )
    h.start({"flag": False})
    flip_input(h, {"flag": True})
    assert created(h.complete("slow"), "skipped") == ["j"]


@pytest.mark.rule("G-58")
def test_of_several_that_lead_to_a_switch_the_first_is_passed_through(draw: Draw) -> None:
    h = draw([fork("f"), task("p"), task("q"), sw("s")],
             [*chain("f", "p", "s"), *chain("f", "q", "s")])  # fmt: skip
    h.start()
    h.complete("p", {"from": "p"})
    switch = of(h.complete("q", {"from": "q"}), CreateTask)[0]
    assert bytes(switch.output) == b'{"from":"p"}'


def flip_input(h: Harness, value: object) -> None:
    """Change the recorded input behind the machine's back."""
    rows = h.recorded()
    opened = rows[0].actions[0]
    rows[0].actions[0] = msgspec.structs.replace(opened, input=text(value))
    h.journal[0] = msgspec.json.encode(rows[0])
    h.reload()


@pytest.mark.rule("G-61")
def test_a_decision_by_the_time_stands_when_time_has_passed(draw: Draw) -> None:
    h = draw(
        [fork("f"), sw("s"), task("x"), task("slow"), task("j")],
        [
            *[edge("f", "s"), edge("f", "slow")],
            cond("s", "x", "system.now < timestamp('2025-01-01T00:00:01Z')"),
            *[edge("x", "j"), edge("slow", "j")],
        ],
    )
    h.start()
    h.complete("x")
    h.advance(3600)
    assert dispatched(h.complete("slow")) == ["j"]


@pytest.mark.rule("G-59")
def test_every_true_edge_is_chosen_and_an_edge_without_condition_always(draw: Draw) -> None:
    h = draw(
        [sw("s"), task("a"), task("b"), task("c"), task("d")],
        [
            *[cond("s", "a", "input.n > 1"), cond("s", "b", "input.n > 10")],
            *[edge("s", "c"), cond("s", "d", "input.n > 2")],
        ],
    )
    step = h.start({"n": 5})
    assert dispatched(step) == ["a", "c", "d"]
    assert h.nodes["s"].branches == ("a", "c", "d")
    assert created(step, "skipped") == ["b"]


@pytest.mark.rule("G-60")
def test_choosing_nothing_is_recorded_as_a_choice(draw: Draw) -> None:
    h = draw([sw("s"), task("a")], [cond("s", "a", "false")])
    (task_of_s, _) = of(h.start(), CreateTask)
    assert task_of_s.branches == ()
    assert h.folded().nodes["s"].branches == ()


@pytest.mark.rule("D-7")
def test_the_default_edge_is_taken_only_when_no_condition_held(draw: Draw) -> None:
    # scenarios 240, 241, 242: never "some branch", and the default is not evaluated
    nodes = [sw("s"), task("a"), task("b"), task("rest")]
    edges = [
        otherwise("s", "rest"),
        *[cond("s", node, f"input.v == '{node}'") for node in "ab"],
    ]
    assert dispatched(draw(nodes, edges).start({"v": "b"})) == ["b"]
    assert dispatched(draw(nodes, edges).start({"v": "unforeseen"})) == ["rest"]


@pytest.mark.rule("D-7", "G-59")
def test_an_edge_without_condition_does_not_keep_the_default_away(draw: Draw) -> None:
    h = draw(
        [sw("s"), task("a"), task("always"), task("rest")],
        [cond("s", "a", "input.a"), edge("s", "always"), otherwise("s", "rest")],
    )
    assert dispatched(h.start({"a": False})) == ["always", "rest"]
    assert h.nodes["s"].branches == ("always", "rest")


@pytest.mark.rule("D-7")
def test_branches_are_recorded_in_the_order_of_the_document(draw: Draw) -> None:
    h = draw(
        [sw("s"), task("a"), task("b"), task("c")],
        [edge("s", "c"), otherwise("s", "b"), cond("s", "a", "false")],
    )
    h.start()
    assert h.nodes["s"].branches == ("c", "b")


@pytest.mark.rule("G-59")
def test_a_condition_on_the_only_edge_is_asked_all_the_same(draw: Draw) -> None:
    # scenario 241
    h = draw([sw("s"), task("a")], [cond("s", "a", "input.go")])
    assert created(h.start({"go": False}), "skipped") == ["a"]


@pytest.mark.rule("G-58", "G-72")
def test_a_switch_passes_its_predecessors_output_through(draw: Draw) -> None:
    h = draw(
        [task("p"), sw("s"), task("a", {"n": "{{tasks.s.output.n}}"})],
        [edge("p", "s"), cond("s", "a", "tasks.p.output.n > 1")],
    )
    h.start()
    switch, _ = of(h.complete("p", {"n": 5}), CreateTask)
    assert bytes(switch.output) == b'{"n":5}'


@pytest.mark.rule("G-58")
def test_a_switch_without_a_predecessor_has_an_empty_output(draw: Draw) -> None:
    (switch,) = of(draw([sw("s")], []).start(), CreateTask)
    assert bytes(switch.output) == b"{}"


@pytest.mark.rule("G-58")
def test_a_switch_passes_on_what_leads_to_it_and_not_a_branch_left_out(draw: Draw) -> None:
    # s leads to t through x only; t's first edge comes from s, which did not choose it
    h = draw(
        [task("p"), sw("s"), task("x"), sw("t"), task("z")],
        [
            *[edge("p", "s"), cond("s", "t", "false"), cond("s", "x", "true")],
            *[edge("x", "t"), edge("t", "z")],
        ],
    )
    h.start()
    h.complete("p", {"from": "p"})
    switch = of(h.complete("x", {"from": "x"}), CreateTask)[0]
    assert (switch.node, bytes(switch.output)) == ("t", b'{"from":"x"}')


@pytest.mark.rule("G-64", "D-5", "G-97")
def test_a_broken_condition_is_recorded_on_the_switch_and_siblings_finish(draw: Draw) -> None:
    h = draw(
        [fork("f"), task("p"), sw("s"), task("x"), task("b"), task("b2")],
        [
            *[*chain("f", "p", "s"), cond("s", "x", "tasks.p.output.missing.deeper")],
            *chain("f", "b", "b2"),
        ],
    )
    h.start()
    step = h.complete("p", {"n": 1})
    assert kinds(step) == ["CompleteTask", "CreateTask"]
    failure = failure_of(step, "s")
    assert (failure.kind, failure.permanent) == ("routing", True)
    assert "switch s" in failure.message
    assert "s -> x" in failure.message
    assert h.status("x") == "unreached"
    assert dispatched(h.complete("b")) == ["b2"]
    end = finish(h.complete("b2"))
    assert (end.status, "s -> x" in end.failure.message) == ("failed", True)


@pytest.mark.rule("D-5", "G-64", "G-98")
def test_a_broken_condition_reached_by_the_start_refuses_the_start(draw: Draw) -> None:
    h = draw([fork("f"), sw("s"), task("x")], [edge("f", "s"), cond("s", "x", "input.gone.deeper")])
    with pytest.raises(InvalidRequest, match="switch s: the condition of edge s -> x"):
        h.start({})
    assert h.run.nodes == {}
    assert dispatched(h.start({"gone": {"deeper": True}})) == ["x"]


@pytest.mark.rule("G-62", "G-102")
def test_a_run_recorded_without_choices_asks_the_conditions_again(draw: Draw) -> None:
    h = old_journal("input.go", {"go": True})
    assert dispatched(h.complete("slow", {})) == ["z"]


@pytest.mark.rule("G-62")
def test_asking_again_and_failing_counts_as_choosing_nothing(draw: Draw) -> None:
    h = old_journal("input.go.deeper.still", {"go": True})
    assert created(h.complete("slow", {}), "skipped") == ["j", "z"]


def old_journal(condition: str, value: object) -> Harness:
    """s completed and slow is running, in a journal from before choices were recorded."""
    nodes = [fork("f"), sw("s"), sw("t"), task("slow"), join("j"), task("z")]
    edges = [
        *[edge("f", "s"), *chain("f", "slow", "t"), cond("t", "j", "false")],
        *[cond("s", "j", condition), edge("j", "z")],
    ]
    h = Harness(plan_of(nodes, edges), live=True)
    rows = [
        OpenRun("g", "r1", "1", "0", "", input=text(value)),
        CreateTask("t001", "f", "completed", output=Raw(b"{}")),
        CreateTask("t002", "s", "completed", output=Raw(b"{}")),
        CreateTask("t003", "slow", "pending", input=Raw(b"{}")),
    ]
    row = Transition(h.now, list(rows))
    h.journal.append(msgspec.json.encode(row))
    h.outputs.update(f=Raw(b"{}"), s=Raw(b"{}"))
    h.machine = GraphMachine(h.plan, fold(h.recorded()), h.deps)
    return h


@pytest.mark.rule("G-63")
@pytest.mark.parametrize(
    ("value", "taken"),
    [
        *[(True, True), (False, False), ("x", True), ("", False), ("false", True), (3, True)],
        *[(0, False), (0.0, False), (-0.0, False), (0.5, True), (None, False)],
        *[([], True), ({}, True), ([0], True)],
    ],
)
def test_a_conditions_value_becomes_a_bool_forgivingly(
    draw: Draw, value: object, taken: bool
) -> None:
    h = draw([sw("s"), task("a")], [cond("s", "a", "input.v")])
    assert dispatched(h.start({"v": value})) == (["a"] if taken else [])
