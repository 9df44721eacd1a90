"""Templates compile at load, and read only what is certain to have ended."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.unit.graph.documents import ORDER, changed, document, problems, task

AT = "/nodes/3/spec/input/order"


def reading(text: str) -> list[str]:
    """The problems of a template in `ship`, which fetch, route and review come before."""
    found = problems(changed(AT, text))
    assert {(p.pointer, p.node) for p in found} <= {(AT, "ship")}
    return [str(problem) for problem in found]


def test_a_syntax_error_names_node_pointer_line_and_column() -> None:
    (problem,) = reading("a\n {{input.x +}}")
    assert problem.startswith(f"{AT} (node ship): ")
    assert "(its line 2, column " in problem


@pytest.mark.parametrize("text", ["{{", "{{}}", "{{input.x", "{{input..x}}", "{{nosuch(1)}}"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    assert len(reading(text)) == 1


# scenario 275: what looks like a template and is none never reaches a worker unseen
def test_a_template_stays_literal_only_when_written_so() -> None:
    assert reading("{{{{ input.x }}") == []


@pytest.mark.parametrize(
    "text",
    [
        "{{input.a}} {{config.b}} {{system.now}} {{system.run_id}}",
        "{{tasks.fetch.output.body}}",
        "{{tasks.review.status}}",
        '{{tasks["review"].output}}',
        "{{secrets.key}}",
        "Bearer {{secrets.key}} {{secrets.other}}",
        "{{tasks[input.which].output}}",
        "{{input.list.map(x, x.a)}}",
        "plain }} text",
    ],
)
def test_input_config_system_secrets_and_ancestors_may_be_read(text: str) -> None:
    assert reading(text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{inptu.a}}", 'nothing called "inptu" (column 3 of the text); did you mean "input"?'),
        ("x {{steps.a.output}}", 'nothing called "steps" (column 5 of the text)'),
        (
            "{{tasks.fech.output}}",
            'no node "fech" to read (column 9 of the text); did you mean "fetch"?',
        ),
        ("{{tasks.ship.output}}", "is read before ship has ended (column 9 of the text)"),
        ("two\nlines {{inptu.a}}", 'nothing called "inptu" (its line 2, column 9)'),
    ],
)
def test_what_is_not_there_may_not_be_read(text: str, message: str) -> None:
    (problem,) = reading(text)
    assert message in problem


def test_every_wrong_read_of_one_text_is_told() -> None:
    assert len(reading("{{a}}{{b}}{{tasks.c.output}}{{tasks.d.output}}")) == 4


def test_one_broken_text_hides_no_other_of_the_same_spec() -> None:
    broken = changed("/nodes/3/spec/input", {"a": "{{(}}", "b": "{{tasks.x.output}}", "c": "{{y}}"})
    assert [p.pointer.rpartition("/")[2] for p in problems(broken)] == ["a", "b", "c"]


@pytest.mark.parametrize("reader", ["a", "b", "c"])
def test_only_nodes_that_come_before_may_be_read(reader: str) -> None:
    # scenario 254
    #    a
    #   / \
    #  b   c   and neither b nor c is sure to have ended when the other starts
    drawn = document("a b c", "a>b a>c")
    readers = {"a": ["b", "c"], "b": ["c"], "c": ["b"]}
    at = "abc".index(reader)
    for other in readers[reader]:
        spoiled = changed(
            f"/nodes/{at}", task(reader, {"x": f"{{{{tasks.{other}.output}}}}"}), drawn
        )
        (problem,) = problems(spoiled)
        assert f"{other} does not come before {reader}" in problem.message
        assert problem.hint == f"lead edges from {other} to {reader}"


def test_an_ancestor_far_above_may_be_read() -> None:
    drawn = document("a b c d", "a>b b>c c>d")
    assert problems(changed("/nodes/3", task("d", {"x": "{{tasks.a.output}}"}), drawn)) == []


def test_in_a_circle_nothing_is_said_about_order() -> None:
    drawn = document("a b", "a>b b>a")
    drawn["nodes"][0] = task("a", {"x": "{{tasks.b.output}}", "y": "{{tasks.z.output}}"})
    assert [p.pointer for p in problems(drawn)] == ["/edges", "/nodes/0/spec/input/y"]


@pytest.mark.rule("D-23")
@pytest.mark.parametrize(
    ("text", "nodes", "shown"),
    [
        ("{{tasks.send-welcome.output}}", "send-welcome b", "send-welcome"),
        ("{{tasks.send-welcome.output}}", "send send-welcome b", "send-welcome"),
        ("{{tasks.send-x-1.output.a}}", "send-x-1 b", "send-x-1"),
        ("{{ 1 + tasks.send-welcome.output.n }}", "send-welcome b", "send-welcome"),
    ],
)
def test_a_hyphen_read_as_minus_is_explained(text: str, nodes: str, shown: str) -> None:
    chain = nodes.split()
    drawn = document(nodes, " ".join(f"{a}>{b}" for a, b in pairwise(chain)))
    found = problems(changed(f"/nodes/{len(chain) - 1}", task("b", {"x": text}), drawn))
    assert f'CEL reads "-" as minus: write tasks["{shown}"]' in {p.hint for p in found}


def test_a_true_subtraction_is_left_alone() -> None:
    drawn = document("send b", "send>b")
    spec = {"x": "{{tasks.send.output.n-input.m}}"}
    assert problems(changed("/nodes/1", task("b", spec), drawn)) == []


# ------------------------------------------------------------------------------------ conditions


def condition(text: Any) -> list[str]:
    found = problems(changed("/edges/1/condition", text))
    assert {(p.pointer, p.node) for p in found} <= {("/edges/1/condition", "route")}
    return [p.text for p in found]


@pytest.mark.rule("D-11")
@pytest.mark.parametrize("text", ["", "true", "input.x > 1", "{{{{input.x}}"])
def test_a_condition_without_a_template_is_refused(text: str) -> None:
    (message,) = condition(text)
    assert "needs a template" in message


@pytest.mark.rule("D-11")
@pytest.mark.parametrize(
    "text", ["{{input.x}} ", " {{input.x}}", "{{input.x}} or {{input.y}}", "!{{input.x}}"]
)
def test_text_around_a_condition_would_make_it_always_true_and_is_refused(text: str) -> None:
    (message,) = condition(text)
    assert "a condition is one template" in message


@pytest.mark.parametrize(
    "text", ["{{ input.x }}", '{{ "}}" == input.x }}', '{{ input.x == "{{" }}', "{{ {'a': {}} }}"]
)
def test_a_condition_may_be_any_one_template(text: str) -> None:
    assert condition(text) == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{{input.x >}}", "(column 12 of the text)"),
        ("{{x}}", 'nothing called "x"'),
        ("{{tasks.ship.status == 'completed'}}", "ship does not come before route"),
        ("{{tasks.route.output}}", "route is read before route has ended"),
        ("{{secrets.key == 'a'}}", "may not read secrets"),
    ],
)
def test_a_condition_reads_what_comes_before_its_switch(text: str, part: str) -> None:
    (message,) = condition(text)
    assert part in message


# ---------------------------------------------------------------------------------------- output


@pytest.mark.parametrize(
    ("output", "pointer", "part"),
    [
        ({"a": "{{tasks.x.output}}"}, "/output/a", 'no node "x"'),
        ("{{outptu}}", "/output", 'nothing called "outptu"'),
        (["{{(}}"], "/output/0", "(column 4 of the text)"),
        ("{{secrets.key}}", "/output", "the output is recorded"),
    ],
)
def test_the_output_is_checked_like_a_spec(output: Any, pointer: str, part: str) -> None:
    (problem,) = problems(changed("/output", output))
    assert (problem.pointer, problem.node) == (pointer, None)
    assert part in problem.text


def test_the_output_may_read_every_node() -> None:
    every = [f"{{{{tasks.{node['id']}.status}}}}" for node in ORDER["nodes"]]
    assert problems(changed("/output", every)) == []


# --------------------------------------------------------------------------------------- secrets


@pytest.mark.parametrize("other", ["input.x", "tasks.fetch.output", "system.now"])
def test_a_text_that_reads_a_secret_reads_nothing_else(other: str) -> None:
    (problem,) = reading(f"{{{{secrets.key}}}} {{{{{other}}}}}")
    assert "may read nothing else" in problem
