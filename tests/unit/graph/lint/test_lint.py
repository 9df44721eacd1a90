"""lint: errors as they stop loading, and warnings of what loads and may surprise."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.graph import lint
from tests.unit.graph.documents import ORDER, changed, document, problems, task, warnings


def test_a_good_document_has_no_findings() -> None:
    assert lint(ORDER) == []


@pytest.mark.parametrize("source", ["{", b"\xff", [], "[]", None])
def test_what_is_no_document_is_one_error(source: Any) -> None:
    (finding,) = lint(source)
    assert (finding.severity, finding.pointer) == ("error", "")


@pytest.mark.rule("D-24")
def test_errors_are_those_of_loading_and_warnings_stand_beside_them() -> None:
    spoiled = changed("/edges/2", {"from": "route", "to": "ship", "condition": "{{input.x}}"})
    spoiled["x"] = 1
    found = lint(spoiled)
    assert [f for f in found if f.severity == "error"] == problems(spoiled)
    warned = [f.pointer for f in found if f.severity == "warning"]
    assert warned == ["/nodes/1", "/output/tracking"]


# scenarios 240, 242: what happens when nothing matches is said, not guessed
def test_a_switch_that_may_choose_nothing_is_told() -> None:
    (finding,) = warnings(document("s:SWITCH a b", "s?a s?b"))
    assert (finding.pointer, finding.node) == ("/nodes/0", "s")
    assert "everything after this SWITCH is skipped" in finding.message
    assert finding.hint == 'give one edge "default": true'


@pytest.mark.rule("D-7")
def test_a_default_beside_an_edge_that_is_always_taken_is_told() -> None:
    (finding,) = warnings(document("s:SWITCH a b c", "s?a s:b s>c"))
    assert "always taken, also beside the default" in finding.message


@pytest.mark.parametrize("edges", ["s?a s:b", "s?a s>b"])
def test_a_switch_that_always_chooses_something_is_fine(edges: str) -> None:
    assert warnings(document("s:SWITCH a b", edges)) == []


@pytest.mark.parametrize(
    ("nodes", "edges", "part"),
    [
        ("s:SWITCH a b", "s>a s>b", "no edge of this SWITCH has a condition"),
        ("s:SWITCH a b", "s>a s:b", "no edge of this SWITCH has a condition"),
        ("a s:SWITCH", "a>s", "no edge leaves this SWITCH"),
        ("f:FORK a", "f>a", "one edge leaves this FORK"),
        ("f:FORK", "", "no edge leaves this FORK"),
        ("a j:JOIN", "a>j", "one edge leads to this JOIN"),
        # scenario 206: a join of nothing
        ("j:JOIN a", "j>a", "no edge leads to this JOIN"),
    ],
)
def test_a_control_node_that_controls_nothing_is_told(nodes: str, edges: str, part: str) -> None:
    (finding,) = warnings(document(nodes, edges))
    assert part in finding.message


def test_a_node_that_the_entry_does_not_reach_is_told() -> None:
    (finding,) = warnings(document("a b c", "a>b c>b", entry="c", name="g") | {"edges": EDGES})
    assert (finding.pointer, finding.node) == ("/nodes/0", "a")
    assert "a run that starts at c never reaches this node" in finding.message


EDGES = [{"from": "a", "to": "c"}, {"from": "c", "to": "b"}]


def test_a_computed_reference_is_told_with_its_cost() -> None:
    drawn = document("a b", "a>b")
    drawn["nodes"][1] = task("b", {"x": "{{tasks[input.which].output}}"})
    (finding,) = warnings(drawn)
    assert (finding.pointer, finding.node) == ("/nodes/1/spec/input/x", "b")
    assert "the outputs of all nodes are loaded" in finding.message


# ------------------------------------------------------------------------------ reads of skipped


def reader(text: str, edges: str = "s?a s:b a>r b>r") -> list[str]:
    """Warnings of `r`, which joins the branches a and b of the SWITCH s."""
    drawn = document("s:SWITCH a b r", edges)
    drawn["nodes"][3] = task("r", {"x": text})
    return [str(finding) for finding in warnings(drawn)]


@pytest.mark.rule("D-14")
def test_the_output_of_a_branch_that_may_be_skipped_is_told() -> None:
    (finding,) = reader("got {{tasks.a.output.x}}")
    assert finding == (
        "/nodes/3/spec/input/x (node r): a may have been skipped, and then has no output "
        "(column 13 of the text); ask with has(tasks.a.output)"
    )


@pytest.mark.rule("D-14")
@pytest.mark.parametrize(
    "text",
    [
        "{{has(tasks.a.output) ? tasks.a.output.x : 0}}",
        "{{tasks.a.status == 'completed' ? tasks.a.output.x : 0}}",
        "{{tasks.a.?output.orValue(0)}}",
        "{{tasks.a.status}}",
        "{{tasks.s.output}}",
        "{{input.x}}",
    ],
)
def test_a_read_that_asks_first_is_fine(text: str) -> None:
    assert reader(text) == []


def test_a_reader_behind_its_branch_only_is_fine() -> None:
    assert reader("{{tasks.a.output}}", "s?a s:b a>r") == []


def test_branches_of_a_fork_are_never_skipped() -> None:
    drawn = document("f:FORK a b r", "f>a f>b a>r b>r")
    drawn["nodes"][3] = task("r", {"x": "{{tasks.a.output}}{{tasks.b.output}}"})
    assert warnings(drawn) == []


def test_a_branch_that_is_always_taken_is_never_skipped() -> None:
    assert reader("{{tasks.b.output}}", "s?a s>b a>r b>r") == []


@pytest.mark.rule("D-14")
def test_the_output_of_the_run_is_looked_at_too() -> None:
    drawn = document("s:SWITCH a b c", "s?a s:b a>c b>c", output="{{tasks.a.output}}")
    (finding,) = warnings(drawn)
    assert (finding.pointer, finding.node) == ("/output", None)
    drawn["output"] = "{{tasks.c.output}}"
    assert warnings(drawn) == []


@pytest.mark.rule("D-14")
def test_conditions_are_looked_at_too() -> None:
    drawn = document("s:SWITCH a b t:SWITCH c d", "s?a s:b a>t b>t t?c t:d")
    drawn["edges"][4]["condition"] = "{{tasks.a.output.x}}"
    (finding,) = warnings(drawn)
    assert (finding.pointer, finding.node) == ("/edges/4/condition", "t")


@pytest.mark.rule("D-23")
def test_an_id_with_a_hyphen_is_shown_with_brackets() -> None:
    drawn = document("s:SWITCH a-b c r", "s?a-b s:c a-b>r c>r")
    drawn["nodes"][3] = task("r", {"x": '{{tasks["a-b"].output}}'})
    (finding,) = warnings(drawn)
    assert finding.hint == 'ask with has(tasks["a-b"].output)'
