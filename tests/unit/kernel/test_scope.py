"""What templates can see of nodes, and what they are told of those that are not there."""

from __future__ import annotations

import pytest

from perdure.kernel.run import NodeState
from perdure.kernel.scope import SystemView, TaskViews, Unfinished

NODES = {
    "done": NodeState("t1", "completed"),
    "left": NodeState("t2", "skipped"),
    "lost": NodeState("t3", "failed"),
    "busy": NodeState("t4", "pending"),
    "late": NodeState("t5", "completed"),
    "off": NodeState("t6", "canceled"),
    "asleep": NodeState("t7", "waiting", wake_at=5),
}
DONE = {"status": "completed", "output": {"n": 1}}


def views() -> TaskViews:
    return TaskViews({"done": DONE}, NODES)


@pytest.mark.rule("G-72", "D-14")
def test_resolved_nodes_are_there_in_the_order_they_were_reached() -> None:
    tasks = views()
    assert list(tasks) == ["done", "left", "lost", "off"]
    assert len(tasks) == 4
    assert tasks["done"] is DONE
    assert [name in tasks for name in ("done", "left", "busy", "nowhere")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.rule("D-14")
@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("nowhere", "node nowhere was not reached"),
        ("busy", "node busy has not ended yet"),
        ("asleep", "node asleep has not ended yet"),
        ("late", "the output of node late was not loaded"),
    ],
)
def test_a_node_that_is_not_there_says_why(node: str, reason: str) -> None:
    with pytest.raises(LookupError, match=reason):
        views()[node]


@pytest.mark.rule("D-14")
@pytest.mark.parametrize(
    ("node", "ended"), [("left", "was skipped"), ("lost", "failed"), ("off", "was canceled")]
)
def test_a_node_without_output_shows_its_status_and_says_how_it_ended(
    node: str, ended: str
) -> None:
    view = views()[node]
    assert isinstance(view, Unfinished)
    assert dict(view) == {"status": NODES[node].status}
    assert "output" not in view
    with pytest.raises(LookupError, match=f"node {node} has no output: it {ended}"):
        view["output"]
    with pytest.raises(KeyError):
        view["other"]


@pytest.mark.rule("D-26")
def test_the_time_is_made_when_it_is_asked_for() -> None:
    system = SystemView("r1", "g", "1")
    system.at = 1_500_000
    assert system["now"].isoformat() == "1970-01-01T00:00:01.500000+00:00"
    assert "now" in system
    assert dict(system) == {"run_id": "r1", "workflow": "g", "version": "1"}
    with pytest.raises(KeyError):
        system["other"]
