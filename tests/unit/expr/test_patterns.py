"""matches(): RE2's syntax, and time linear in the string whatever the pattern."""

from __future__ import annotations

import pytest

from perdure.expr import Budget, ExprError, compile_expression


def found(text: str, pattern: str, budget: Budget | None = None) -> bool:
    return bool(compile_expression("t.matches(p)").evaluate({"t": text, "p": pattern}, budget))


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("order-42", r"^order-\d+$", True),
        ("order-", r"^order-\d+$", False),
        ("a@b.io", r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$", True),
        ("GREY", "(?i)gr[ae]y", True),
        ("a\nb", "a.b", False),
        ("a\nb", "(?s)a.b", True),
        ("one\ntwo", "(?m)^two$", True),
        ("word", r"\bword\b", True),
        ("swordfish", r"\bword\b", False),
        ("Été", r"^\p{Lu}\pL+$", True),
        ("aaa", "^a{2}$", False),
        ("", "^$", True),
        ("a.b", r"\Qa.b\E", True),
    ],
)
def test_patterns(text: str, pattern: str, expected: bool) -> None:
    assert found(text, pattern) is expected


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", "(?=a)", "(?!a)", "(?<=a)b", "a**", "*a", "(", "a)", "[a", r"\y", "a{1001}", "[b-a]",
     r"\p{Greek}", "((((a{9}){9}){9}){9}){9}", "(" * 5000, "a" * 5000],
)  # fmt: skip
def test_what_needs_memory_or_is_malformed_is_refused(pattern: str) -> None:
    with pytest.raises(ExprError, match="pattern"):
        found("aaaa", pattern)


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b", ".*.*.*.*x", "(?:a?){30}a{30}$"]
)
def test_patterns_that_make_a_backtracker_hang_end_at_once(pattern: str) -> None:
    text = "a" * 5_000 + "!"
    assert found(text, pattern) is False


def test_a_pattern_whose_states_explode_spends_its_budget() -> None:
    text = "".join("ab"[(i * i * 7919 >> 7) & 1] for i in range(20_000))
    with pytest.raises(ExprError, match="budget of steps"):
        found(text, "(a|b)*a(a|b){200}c(a|b){200}", Budget(steps=20_000))


def test_a_text_above_the_limit_is_refused() -> None:
    with pytest.raises(ExprError, match="1000000 characters"):
        found("a" * 1_000_001, "b")
