"""Calls of TASK nodes, judged against the steps that an app has."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.flow.step import Step, step
from perdure.graph import lint
from perdure.model.graph_rules import Finding


@step
def greet(name: str, times: int = 1) -> None: ...


STEPS: dict[str, Step[..., Any]] = {"greet": greet}


def found(spec: Any) -> list[Finding]:
    node = {"id": "a", "type": "TASK", "spec": spec}
    return lint({"name": "calls", "nodes": [node]}, steps=STEPS)


def test_a_step_that_no_app_has_is_an_error() -> None:
    (finding,) = found({"step": "gret", "input": {"name": "x"}})
    assert (finding.pointer, finding.severity) == ("/nodes/0/spec/step", "error")
    assert str(finding).endswith('there is no step "gret"; did you mean "greet"?')


def test_a_misspelt_parameter_is_an_error_where_it_stands() -> None:
    (finding,) = found({"step": "greet", "input": {"nmae": "{{input.x}}", "times": 2}})
    assert (finding.pointer, finding.severity) == ("/nodes/0/spec/input/nmae", "error")


@pytest.mark.parametrize(
    ("input", "pointer", "part"),
    [
        ({"times": 2}, "/nodes/0/spec/input", 'needs its parameter "name"'),
        ({"name": 5}, "/nodes/0/spec/input/name", "Expected `str`, got `int`"),
        ({"name": "x", "times": "{{input.n}}!"}, "/nodes/0/spec/input/times", "got `str`"),
        ({"name": "x", "times": "{{{{"}, "/nodes/0/spec/input/times", "Expected `int`, got `str`"),
    ],
)
def test_a_call_that_cannot_work_is_an_error(input: Any, pointer: str, part: str) -> None:
    (finding,) = found({"step": "greet", "input": input})
    assert finding.pointer == pointer
    assert part in finding.message


def test_a_call_without_input_is_told_at_the_spec() -> None:
    (finding,) = found({"step": "greet"})
    assert finding.pointer == "/nodes/0/spec"


@pytest.mark.parametrize(
    "spec",
    [
        {"step": "greet", "input": {"name": "{{input.name}}", "times": "{{input.n}}"}},
        {"step": "greet", "input": "{{input}}"},
        {"step": "{{input.step}}", "input": 5},
        "{{input.spec}}",
    ],
)
def test_a_call_that_may_work_is_fine(spec: Any) -> None:
    assert found(spec) == []


def test_without_steps_calls_are_not_looked_at() -> None:
    node = {"id": "a", "type": "TASK", "spec": {"step": "none"}}
    assert lint({"name": "calls", "nodes": [node]}) == []


def test_a_name_that_no_step_can_have_is_told_once() -> None:
    (finding,) = found({"step": "gr_eet"})
    assert (finding.pointer, finding.message[:19]) == ("/nodes/0/spec/step", "step 'gr_eet' is no")
