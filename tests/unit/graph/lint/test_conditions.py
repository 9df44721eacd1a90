"""Doubts about conditions: always the same, or no question at all."""

from __future__ import annotations

import pytest

from tests.unit.graph.documents import document, problems, warnings


def told(condition: str) -> list[str]:
    """Warnings of the condition on the edge from the SWITCH to b, after `a` and an HTTP `h`."""
    drawn = document("a h s:SWITCH b c", "a>h h>s s?b s:c")
    drawn["nodes"][1] = {"id": "h", "type": "HTTP", "spec": {"url": "https://a.test"}}
    drawn["edges"][2]["condition"] = condition
    return [finding.message for finding in warnings(drawn) if finding.pointer.startswith("/edges")]


@pytest.mark.rule("D-11")
@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("{{true}}", "reads nothing and is always true: this edge is always taken"),
        ("{{1 > 2 || 'a' == 'b'}}", "reads nothing and is never true"),
        ("{{size(input.items)}}", "is a number: 0 counts as no"),
        ("{{input.total - 5}}", "is a number: 0 counts as no"),
        ("{{input.name + 'x'}}", 'is a text: "" counts as no'),
        ("{{string(input.ok)}}", 'anything else (also "false") as yes'),
        ("{{input.ok ? 'yes' : 'no'}}", "is a text"),
        ("{{[input.a]}}", "is a list, which always counts as yes"),
        ("{{input.items.filter(i, i > 1)}}", "is a list"),
        ("{{ {'a': input.a} }}", "is an object, which always counts as yes"),
        ("{{input.x ? null : null}}", "is null, which always counts as no"),
        ("{{ tasks.h.output }}", "the output of h (HTTP) is an object, which always counts as yes"),
    ],
)
def test_a_condition_that_is_no_question_is_told(condition: str, part: str) -> None:
    (message,) = told(condition)
    assert part in message


@pytest.mark.parametrize(
    "condition",
    [
        "{{input.ok}}",
        "{{!input.ok}}",
        "{{input.a == 1 && has(input.b)}}",
        "{{input.total > 5 ? input.a : input.b}}",
        "{{input.items.exists(i, i > 1)}}",
        "{{'a' in input.tags}}",
        "{{input.name.startsWith('x')}}",
        "{{tasks.a.output}}",
        "{{tasks.h.output.body.ok}}",
        "{{tasks.h.output.status < 300}}",
        "{{cel.bind(x, input.a, x > 1)}}",
    ],
)
def test_a_question_is_fine(condition: str) -> None:
    assert told(condition) == []


def test_a_condition_without_a_template_is_refused() -> None:
    drawn = document("s:SWITCH a b", "s?a s:b")
    drawn["edges"][0]["condition"] = "input.total > 100"
    (finding,) = problems(drawn)
    assert "a condition needs a template" in finding.message


@pytest.mark.parametrize("condition", ["{{1 / 0 > 1}}", "{{[1][3] == 1}}", "{{int('x') > 1}}"])
def test_a_constant_that_cannot_be_evaluated_is_refused(condition: str) -> None:
    drawn = document("s:SWITCH a b", "s?a s:b")
    drawn["edges"][0]["condition"] = condition
    (finding,) = problems(drawn)
    assert finding.pointer == "/edges/0/condition"
