"""No expression, however hostile, takes more than it is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.expr import Budget, ExprError, compile_expression, compile_template


def refusal(text: str, budget: Budget | None = None, **variables: Any) -> str:
    with pytest.raises(ExprError) as caught:
        compile_expression(text).evaluate(variables, budget)
    return caught.value.message


@pytest.mark.parametrize(
    "text",
    ["(" * 10_000 + "1" + ")" * 10_000, "[" * 10_000, "!(" * 5_000, "a[" * 5_000, "{1:" * 5_000,
     "f(" * 5_000, "1" + " + 1" * 5_000, "a" + ".b()" * 5_000, "a" + "[x]" * 5_000,
     "true ? 1 : " * 3_000 + "2", "1 < " * 4_000 + "1", "-(" * 4_000],
)  # fmt: skip
def test_nesting_and_chains_are_bounded(text: str) -> None:
    with pytest.raises(ExprError):
        compile_expression(text)


def test_long_flat_expressions_are_fine() -> None:
    assert compile_expression(" || ".join(["false"] * 5_000)).evaluate({}) is False
    assert len(compile_expression(f"[{'1,' * 5_000}]").evaluate({})) == 5_000
    assert compile_expression("x" + ".a" * 150).refs.roots == {"x"}


def test_a_text_of_any_length_is_refused_before_it_is_read() -> None:
    with pytest.raises(ExprError, match="longer than"):
        compile_expression("'" + "a" * 1_000_000 + "'")


def doubled(times: int, start: str, twice: str, end: str) -> str:
    """cel.bind() of a value of twice the size, again and again."""
    text = end.replace("@", f"v{times}")
    for i in range(times, 0, -1):
        text = f"cel.bind(v{i}, {twice.replace('@', f'v{i - 1}')}, {text})"
    return f"cel.bind(v0, {start}, {text})"


@pytest.mark.parametrize(
    ("start", "twice", "end"),
    [
        ("'aaaaaaaa'", "@ + @", "@.size()"),
        ("[1]", "@ + @", "@.size()"),
        ("b'aaaa'", "@ + @", "@.size()"),
        ("'aa'", "@.replace('a', 'aa')", "@.size()"),
        ("'aa'", "[@, @].join('')", "@.size()"),
        ("'aa'", "'%s%s'.format([@, @])", "@.size()"),
        ("[1]", "[@, @]", "'%s'.format([@])"),
        ("[1]", "[@, @]", "@ == [@[0], @[1].map(x, x)]"),
        ("[1]", "[@, @].flatten()", "@.size()"),
        ("'a'", "strings.quote(@ + @)", "@.size()"),
    ],
)
def test_doubling_spends_the_budget(start: str, twice: str, end: str) -> None:
    small = Budget(steps=100_000, size=100_000)
    assert "budget" in refusal(doubled(40, start, twice, end), small)


def test_a_small_value_that_shares_its_parts_cannot_render_as_a_large_one() -> None:
    text = doubled(40, "[1]", "[@, @]", "@")
    compile_expression(text).evaluate({})
    for template in (f"{{{{ {text} }}}}", f"shown: {{{{ {text} }}}}"):
        with pytest.raises(ExprError, match="larger than the budget"):
            compile_template(template).render({}, Budget(size=100_000))


def test_faults_are_not_computed_again_and_again() -> None:
    text = doubled(40, "1 / 0 > 0", "@ || @", "@")
    assert refusal(text) == "division by zero"


@pytest.mark.parametrize(
    "text",
    ["l.map(a, l.map(b, l.map(c, 1)))", "l.all(a, l.all(b, l.all(c, true)))",
     "l.exists(a, l.exists(b, l.exists(c, false)))", "l.filter(a, l.all(b, l == l)).size()",
     "l.exists_one(a, l.exists_one(b, l.exists_one(c, false)))", "l.map(x, l.sort())",
     "l.transformMap(i, v, l.transformMap(j, w, l.transformList(k, u, 1)))"],
)  # fmt: skip
def test_nested_macros_spend_the_budget(text: str) -> None:
    assert "budget of steps" in refusal(text, Budget(steps=40_000), l=list(range(200)))


@pytest.mark.parametrize(
    "text",
    ["l.map(i, t.contains('c'))", "l.map(i, t.indexOf('c'))", "l.map(i, t.lastIndexOf('c'))",
     "l.map(i, t == u)", "l.map(i, t < u)", "l.map(i, t.substring(1))", "l.map(i, bytes(t))",
     "l.map(i, string(b))", "l.map(i, b == c)", "l.map(i, math.greatest(l))", "l.map(i, -1 in l)",
     "l.map(i, t.matches('c'))", "l.map(i, t.trim())", "l.map(i, t.split('')).size()"],
)  # fmt: skip
def test_looking_through_long_values_in_a_macro_spends_the_budget(text: str) -> None:
    long, other = "ab" * 100_000, "ab" * 99_999 + "ac"
    values = {"t": long, "u": other, "b": long.encode(), "c": other.encode()}
    small = Budget(steps=50_000, size=1_000_000)
    assert "budget" in refusal(text, small, l=list(range(1_000)), **values)


def test_an_exhausted_budget_is_not_absorbed_by_logic() -> None:
    assert "budget" in refusal("l.all(x, true) || true", Budget(steps=10), l=list(range(100)))
    assert "budget" in refusal("lists.range(1000).size() > 0 || true", Budget(size=10))


def test_a_macro_that_stops_early_pays_only_for_its_turns() -> None:
    text = "l.exists(x, x == 0) && l.exists(x, x == 0)"
    assert compile_expression(text).evaluate({"l": list(range(90))}, Budget(steps=100)) is True


def test_every_evaluation_has_the_whole_budget() -> None:
    program = compile_expression("l.map(x, x).size()")
    for _ in range(5):
        assert program.evaluate({"l": list(range(90))}, Budget(steps=100)) == 90


def test_values_nested_too_deeply_are_an_error_and_not_a_crash() -> None:
    deep: list[Any] = []
    for _ in range(50_000):
        deep = [deep]
    other = [deep]
    assert "nested too deeply" in refusal("x == y[0]", x=deep, y=other)
    with pytest.raises(ExprError, match="nested deeper"):
        compile_template("{{ x }}").render({"x": deep})
