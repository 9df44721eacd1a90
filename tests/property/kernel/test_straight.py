"""What the plan knows of straight edges is what the readiness rule finds: any graph, any events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import force_setattr, replace

from perdure.codec.values import JsonCodec
from perdure.kernel.actions import Transition
from perdure.kernel.events import Event, NodeCompleted
from perdure.model.durations import SECOND
from perdure.model.errors import InvalidRequest
from tests.property.kernel.graphs import Drawn, graphs
from tests.property.kernel.test_restless import REFUSALS, Data, Restless
from tests.unit.kernel.drawing import task
from tests.unit.kernel.harness import NEW_YEAR, Harness, kinds, plan_of, shown

#: What a run may be started with, beside its input.
CONTEXTS = st.fixed_dictionaries(
    {},
    optional={
        "config": st.just({"a": 1}),
        "metadata": st.just({"b": "c"}),
        "deadline": st.just(NEW_YEAR + 3600 * SECOND),
        "start_node": st.sampled_from(["n0", "n1", "nowhere"]),
    },
)


class Twins(Restless):
    """A run decided on twice: as always, and by the readiness rule alone."""

    def __init__(self, graph: Drawn, data: Data) -> None:
        super().__init__(graph, data)
        plan = graph.plan()
        force_setattr(plan, "straight", {})
        force_setattr(plan, "opening", None)
        force_setattr(plan, "closing", frozenset())
        self.by_rule = Harness(plan, live=True)

    def start(self) -> bool:
        context = self.pick(CONTEXTS)
        try:
            made = self.h.start({}, **context)
        except InvalidRequest:
            with pytest.raises(InvalidRequest):
                self.by_rule.start({}, **context)
            return False
        self.check_same(made, self.by_rule.start({}, **context))
        return True

    def apply(self, event: Event) -> Transition | None:
        self.by_rule.now, self.by_rule.roll = self.h.now, self.h.roll
        try:
            made = self.h.apply(event)
        except REFUSALS as refusal:
            with pytest.raises(type(refusal)):
                self.by_rule.apply(event)
            return None
        self.past.append(event)
        self.check_same(made, self.by_rule.apply(event))
        if self.pick(st.integers(0, 3)) == 0:  # outputs are to be loaded
            self.h.reload()
            self.by_rule.reload()
        return made

    def check_same(self, made: Transition, by_rule: Transition) -> None:
        assert msgspec.json.encode(made) == msgspec.json.encode(by_rule)
        assert shown(self.h.run) == shown(self.by_rule.run)


@st.composite
def returning(draw: st.DrawFn) -> Drawn:
    """A graph that may return the output of one of its nodes, whether that has one or not."""
    graph = draw(graphs() | graphs(waiting=True))
    tasks = [None, *(node.id for node in graph.nodes if node.kind == "TASK")]
    returns = draw(st.sampled_from(tasks))
    return msgspec.structs.replace(graph, returns=returns)


@pytest.mark.rule("G-48")
@settings(max_examples=300)
@given(returning(), st.integers(0, 6), st.data())
def test_straight_edges_decide_what_the_readiness_rule_decides(
    graph: Drawn, events: int, data: Data
) -> None:
    world = Twins(graph, data)
    if world.start():
        for _ in range(events):
            world.something()
        world.settle()


def test_only_an_edge_that_stands_alone_and_leads_to_a_worker_is_straight() -> None:
    kinds = {"s": "SWITCH", "j": "JOIN", "w": "WAIT"}
    specs = {"w": {"spec": {"duration": "1s"}}}
    nodes = [
        {"id": id, "type": kinds[id], **specs.get(id, {})} if id in kinds else task(id)
        for id in "abcdesxyjwz"
    ]
    pairs = ["ab", "bc", "bd", "ce", "de", "es", "sx", "sy", "xj", "yj", "jw", "wz"]
    plan = plan_of(nodes, [{"from": pair[0], "to": pair[1]} for pair in pairs])
    assert {source: node.id for source, node in plan.straight.items()} == {"a": "b", "w": "z"}


def test_a_straight_step_that_gets_no_id_changes_nothing_and_is_decided_later() -> None:
    nodes = [task("a"), task("b", {"read": "{{tasks.a.output}}"})]
    h = Harness(plan_of(nodes, [{"from": "a", "to": "b"}]), live=True)
    h.start({})
    before, outputs = shown(h.run), dict(h.machine.outputs)
    ids, h._ids = h._ids, iter(())
    with pytest.raises(StopIteration):
        h.machine.decide(NodeCompleted(h.nodes["a"].task, "a", 0, Raw(b"1")))
    assert (shown(h.run), h.machine.outputs) == (before, outputs)
    h._ids = ids
    assert [type(action).__name__ for action in h.complete("a").actions] == [
        "CompleteTask", "CreateTask", "DispatchTask",
    ]  # fmt: skip


def test_a_run_that_is_interrupted_while_it_ends_is_as_it_was() -> None:
    class Interrupted(JsonCodec):
        def write(self, value: Any) -> bytes:
            raise KeyboardInterrupt

    h = Harness(plan_of([task("a")], []), live=True)
    h.start({})
    codec, outputs = h.deps.codec, dict(h.machine.outputs)
    h.machine._turn.deps = replace(h.deps, codec=Interrupted())
    with pytest.raises(KeyboardInterrupt):  # the harness looks at the snapshot
        h.complete("a")
    assert h.machine.outputs == outputs
    h.machine._turn.deps = replace(h.deps, codec=codec)
    assert kinds(h.complete("a")) == ["CompleteTask", "FinishRun"]
