"""Doubts about the drawing: conditions told twice, signals that two nodes fight for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.unit.graph.documents import document, task, warnings


def messages(drawn: dict[str, Any]) -> list[str]:
    return [finding.message for finding in warnings(drawn)]


def test_two_edges_with_one_condition_are_told() -> None:
    drawn = document("s:SWITCH a b c", "s?a s?b s:c")
    drawn["edges"][0]["condition"] = "{{input.x > 1}}"
    drawn["edges"][1]["condition"] = "{{ input.x>1 }}"
    (finding,) = warnings(drawn)
    assert finding.pointer == "/edges/1/condition"
    assert finding.message == "the same condition as on the edge to a: both are taken"


def waiting(edges: str, *signals: str) -> list[str]:
    """`f` forks to the waits a, b (as `edges` say), each for its signal."""
    drawn = document("f:FORK a b z", edges)
    for index, name in enumerate(signals, 1):
        spec = {"signal": name, "timeout": "1h"}
        drawn["nodes"][index] = {"id": "ab"[index - 1], "type": "WAIT_FOR_SIGNAL", "spec": spec}
    return messages(drawn)


# scenario 265: each signal is taken once, so two that wait for one name need two of it
def test_two_that_wait_for_one_signal_at_a_time_are_told() -> None:
    (told,) = waiting("f>a f>b a>z b>z", "go", "go")
    assert told.startswith('a may wait for the signal "go" at the same time')


def test_waits_after_one_another_or_for_different_signals_are_fine() -> None:
    assert waiting("f>a f>b a>z b>z", "go", "stop") == []
    assert waiting("f>a f>z a>b b>z", "go", "go") == []
    assert waiting("f>a f>b a>z b>z", "{{input.x}}", "{{input.x}}") == []


def test_waits_of_which_one_is_chosen_are_fine() -> None:
    drawn = document("s:SWITCH a b", "s?a s:b")
    for node in drawn["nodes"][1:]:
        node.update(type="WAIT_FOR_SIGNAL", spec={"signal": "go", "timeout": 9})
    assert messages(drawn) == []


def test_many_waits_for_one_signal_are_looked_at_in_no_time() -> None:
    names = [f"n{i}" for i in range(300)]
    drawn = document(" ".join(["f:FORK", *names]), " ".join(f"f>{n}" for n in names))
    for node in drawn["nodes"][1:]:
        node.update(type="WAIT_FOR_SIGNAL", spec={"signal": "go", "timeout": 9})
    assert 0 < len(messages(drawn)) <= 100


def test_a_big_document_of_everything_stays_quiet() -> None:
    names = [f"n{i}" for i in range(500)]
    edges = " ".join(f"{a}>{b}" for a, b in pairwise(names))
    drawn = document(" ".join(names), edges)
    drawn["nodes"][-1] = task("n499", {"x": "{{tasks.n0.output.a + input.b}}"})
    assert messages(drawn) == []
