"""What an undo, or an end, costs does not grow with the steps of its saga. Looks at the nodes are
counted, never times."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.kernel.events import (
    AttemptGivenUp,
    NodeCompleted,
    NodeFailed,
    RunCancelled,
    RunStarted,
)
from perdure.kernel.machine import GraphMachine
from perdure.kernel.run import GRACE, Run
from perdure.model.failure import FailureRecord
from tests.unit.kernel.drawing import chain, edge, fork, task
from tests.unit.kernel.harness import Harness, text
from tests.unit.kernel.undo.drawing import drawn_plan

MANY = 2000
#: So many walks over all nodes are made in the life of a run, at most.
A_FEW = 10


class Counted(dict[str, Any]):
    """Says how often it was walked."""

    walks = 0

    def items(self) -> Any:
        self.walks += 1
        return super().items()

    def values(self) -> Any:
        self.walks += 1
        return super().values()

    def __iter__(self) -> Any:
        self.walks += 1
        return super().__iter__()


class Many:
    """A run of many nodes, without the checks that a Harness makes after each event."""

    def __init__(self, nodes: list[Any], edges: list[Any]) -> None:
        undo = [node["id"] for node in nodes if node["type"] == "TASK"]
        plan = drawn_plan(nodes, edges, undo=undo)
        self.run = Run()
        self.nodes = self.run.nodes = Counted()
        self.machine = GraphMachine(plan, self.run, Harness(plan).deps)
        self.apply(RunStarted("r1", input=text(None)))

    def apply(self, event: Any) -> None:
        assert self.machine.decide(event)
        assert self.run.nodes is self.nodes, "looks at the nodes are not counted any more"

    def complete(self, node: str) -> None:
        self.apply(NodeCompleted(self.nodes[node].task, node, 0, text(None)))

    def fail(self, node: str) -> None:
        failure = FailureRecord("Error", "no stock")
        self.apply(NodeFailed(self.nodes[node].task, node, 0, failure))


def in_a_row() -> Many:
    names = [f"n{i}" for i in range(MANY)]
    return Many([task(name) for name in names], chain(*names))


def side_by_side() -> Many:
    names = [f"n{i}" for i in range(MANY)]
    return Many([fork("f"), *map(task, names)], [edge("f", name) for name in names])


@pytest.mark.rule("S-15")
def test_what_comes_next_to_undo_is_not_looked_for_among_all_nodes() -> None:
    many = in_a_row()
    for i in range(MANY - 1):
        many.complete(f"n{i}")
    many.fail(f"n{MANY - 1}")
    for i in reversed(range(MANY - 1)):
        many.complete(f"n{i}~undo")
    assert many.run.status == "failed"
    assert many.nodes.walks <= A_FEW


@pytest.mark.rule("D-18")
def test_ends_that_a_stopping_run_awaits_do_not_each_look_at_all_nodes() -> None:
    many = side_by_side()
    many.apply(RunCancelled())
    for i in range(MANY):
        many.apply(AttemptGivenUp(many.nodes[f"n{i}"].task, f"n{i}", 0))
    assert (len(many.run.unknown), many.nodes[GRACE].status) == (MANY, "canceled")
    assert many.nodes.walks <= A_FEW


@pytest.mark.rule("D-17")
def test_ends_that_a_draining_run_awaits_do_not_each_look_at_all_nodes() -> None:
    many = side_by_side()
    many.fail("n0")
    for i in range(1, MANY):
        many.complete(f"n{i}")
    assert many.run.phase == "compensating"
    assert many.nodes.walks <= A_FEW
