"""Conditions: forgiving about truth, strict about being conditions at all."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.expr import ExprError, compile_condition


@pytest.mark.rule("G-63", "D-11")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True), (False, False), ("x", True), ("", False), ("false", True), (1, True),
        (0, False), (-1, True), (0.0, False), (-0.0, False), (0.5, True), (None, False),
        ([], True), ({}, True), ([0], True),
    ],
)  # fmt: skip
def test_truth_is_forgiving(value: Any, expected: bool) -> None:
    assert compile_condition("{{ x }}").evaluate({"x": value}) is expected


@pytest.mark.rule("G-63", "D-11")
@pytest.mark.parametrize(
    ("text", "expected"),
    [("{{ 0u }}", False), ("{{ 1u }}", True), ("{{ b'' }}", True), ("{{ duration('0') }}", True),
     ("{{ '' }}{{ '' }}", False), (" {{ '' }}", True)],
)  # fmt: skip
def test_truth_of_what_json_does_not_have(text: str, expected: bool) -> None:
    assert compile_condition(text).evaluate({}) is expected


@pytest.mark.rule("D-11")
@pytest.mark.parametrize("text", ["true", "input.x > 1", "", "{{{{ x }}"])
def test_a_text_without_a_template_is_no_condition(text: str) -> None:
    with pytest.raises(ExprError, match="a condition needs a template"):
        compile_condition(text)


@pytest.mark.parametrize("text", ["{{ x.missing }}", "{{ x + 1 }}", "{{ x.?a }}", "a{{ null }}"])
def test_a_condition_that_cannot_be_told_is_an_error(text: str) -> None:
    condition = compile_condition(text)
    with pytest.raises(ExprError):
        condition.evaluate({"x": {}})


def test_a_condition_may_not_read_secrets() -> None:
    with pytest.raises(ExprError, match="may not read secrets") as caught:
        compile_condition("{{ true && secrets.KEY == 'a' }}")
    assert (caught.value.line, caught.value.column) == (1, 12)


def test_a_condition_tells_what_it_reads() -> None:
    assert compile_condition("{{ tasks.a.output.n > input.x }}").refs.tasks == {"a"}
    assert compile_condition("{{ 1 }}{{ input.x }}").refs.roots == {"input"}
