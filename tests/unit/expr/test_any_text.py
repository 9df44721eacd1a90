"""Whatever the text, the outcome is a value or an ExprError, never another exception."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perdure.expr import (
    Budget,
    ExprError,
    TemplateErrors,
    compile_condition,
    compile_expression,
    compile_template,
)
from perdure.expr.functions import METHODS, PLAIN
from perdure.expr.parse import MACROS

WORDS = [
    "input", "x", "tasks", "secrets", "true", "false", "null", "in", "has", "cel.bind", "if", "1",
    "0", "-1", "2u", "1.5", "9223372036854775807", "'a'", '"b"', "b'c'", "r'd'", "'''e'''", "`f`",
    "(", ")", "[", "]", "{", "}", "}}", "{{", ".", ",", ":", "?", "!", "-", "+", "*", "/", "%",
    "==", "!=", "<", ">=", "&&", "||", ".?", "[?", "//", "\n", " ", "'", '"', "\\", "é", "\x00",
    *PLAIN, *METHODS, *MACROS,
]  # fmt: skip
SMALL = Budget(steps=2_000, size=2_000)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
ATOMS = st.sampled_from(
    ["x", "x.a", "y", "y[0]", "1", "-1", "0", "2u", "1.5", "1e300", "'a'", "''", "b'b'", "null",
     "true",
     "[]", "{}", "[1, 'a', 2.5, null]", "{'a': 1}", "{1: true}", "timestamp(0)", "duration('1h')",
     "optional.none()", "optional.of(1)", "x.?a", "'2026-01-01T00:00:00Z'", "9223372036854775807",
     "'[a-c]+'", "int", "'%s %d'", "'Europe/Paris'"]
)  # fmt: skip


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def call(name: str, args: list[str]) -> str:
        return f"{name}({', '.join(args)})"

    return st.one_of(
        st.tuples(inner, st.sampled_from("+ - * / % == < >= && || in".split()), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.builds(call, st.sampled_from(sorted(PLAIN)), st.lists(inner, max_size=3)),
        st.builds(
            lambda target, name, args: call(f"{target}.{name}", args),
            inner,
            st.sampled_from(sorted(METHODS)),
            st.lists(inner, max_size=2),
        ),
        st.tuples(inner, st.sampled_from(sorted(MACROS)), inner).map(
            lambda t: f"{t[0]}.{t[1]}({'v, w' if 'transform' in t[1] else 'v'}, {t[2]})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]}[{t[1]}]"),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        inner.map(lambda text: f"!{text}" if text[0] not in "!-" else f"(-({text}))"),
    )


EXPRESSIONS = st.recursive(ATOMS, grown, max_leaves=12)


def failure(text: str, variables: dict[str, Any]) -> ExprError | None:
    try:
        compile_expression(text).evaluate(variables, SMALL)
    except ExprError as error:
        return error
    return None


def outcome(text: str, variables: dict[str, Any]) -> None:
    error = failure(text, variables)
    if error is not None:
        assert error.source == text
        assert 1 <= error.line <= text.count("\n") + 1
        assert 1 <= error.column <= len(text) + 1


@given(st.text(max_size=60))
def test_any_text_compiles_or_is_an_error(text: str) -> None:
    outcome(text, {"x": 1})


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_row_of_words_compiles_or_is_an_error(words: list[str]) -> None:
    outcome("".join(words), {"x": {"a": [1]}, "input": "a", "tasks": {}})
    outcome(" ".join(words), {"x": {"a": [1]}, "input": "a", "tasks": {}})


@given(EXPRESSIONS, JSON, JSON)
def test_any_well_formed_expression_has_a_value_or_an_error(text: str, x: Any, y: Any) -> None:
    outcome(text, {"x": x, "y": y})


@given(st.lists(st.sampled_from(WORDS), max_size=25), JSON)
def test_any_template_renders_or_is_an_error(words: list[str], x: Any) -> None:
    text = " ".join(words)
    for value in (text, {"k": [text, f"{{{{ {text} }}}}"]}):
        with suppress(ExprError, TemplateErrors):
            compile_template(value).render({"x": x, "input": x}, SMALL)
    with suppress(ExprError):
        compile_condition(text).evaluate({"x": x}, SMALL)


@given(EXPRESSIONS, JSON)
def test_what_a_template_renders_is_plain_json(text: str, x: Any) -> None:
    try:
        out = compile_template(f"{{{{ {text} }}}}").render({"x": x, "y": x}, SMALL)
    except (ExprError, TemplateErrors):
        return
    pending = [out]
    while pending:
        value = pending.pop()
        assert type(value) in {dict, list, str, int, float, bool, type(None)}
        if isinstance(value, dict):
            assert all(type(key) is str for key in value)
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif type(value) is int:
            assert -(2**63) <= value < 2**64
        elif type(value) is float:
            assert value - value == 0.0
