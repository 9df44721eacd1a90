"""What expressions compute: numbers kept apart, variables read in place, missing told from null."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from perdure.expr import ExprError, compile_expression
from perdure.expr.values import Duration, Maybe, Timestamp, Uint


def value(text: str, **variables: Any) -> Any:
    return compile_expression(text).evaluate(variables)


def refusal(text: str, **variables: Any) -> ExprError:
    with pytest.raises(ExprError) as caught:
        value(text, **variables)
    return caught.value


class Lazy(Mapping[str, Any]):
    """A mapping that counts what is asked of it."""

    def __init__(self, data: dict[str, Any], words: str = "") -> None:
        self.data, self.words, self.asked = data, words, list[str]()

    def __getitem__(self, key: str) -> Any:
        self.asked.append(key)
        if key not in self.data:
            raise LookupError(self.words or key)
        return self.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.total > 1000", True),
        ("x.items[1].price * 2", 14),
        ("x['total'] - 1", 1199),
        ("x.items.map(i, i.price)", [5, 7]),
        ("x.items.filter(i, i.price > 5).size()", 1),
        ("x.items.exists(i, i.price == 7) && x.items.all(i, i.price > 0)", True),
        ("has(x.total) && !has(x.missing)", True),
        ("x.?missing.orValue('none')", "none"),
        ("x.?total.optMap(t, t + 1).value()", 1201),
        ("x.none == null", True),
        ("'total' in x ? 'yes' : 'no'", "yes"),
        ("[?x.?total, ?x.?missing]", [1200]),
        ("{'a': 1, ?'b': x.?missing}", {"a": 1}),
        ("1 == 1.0 && 2u > 1.5 && 1 < 2u", True),
        ("7 / 2 + 7 % 4 - -3", 9),
        ("-7 / 2", -3),
        ("cel.bind(t, x.total, t + t)", 2400),
        ("x.f", 0.5),
    ],
)
def test_everyday_expressions(text: str, expected: Any) -> None:
    x = {"total": 1200, "items": [{"price": 5}, {"price": 7}], "none": None, "f": 0.5}
    result = value(text, x=x)
    assert result == expected
    assert type(result) is type(expected)


def test_true_and_one_are_not_equal_and_are_different_keys() -> None:
    assert value("true == x", x=1) is False
    assert value("x in [1]", x=True) is False
    assert value("[true] == [1]") is False
    assert value("{true: 'b', 1: 'i'}[1]") == "i"
    assert value("{true: 'b', 1: 'i'}[true]") == "b"


def test_a_nan_equals_nothing_even_itself_in_a_list() -> None:
    nan = float("nan")
    assert value("x == x", x=nan) is False
    assert value("x == x", x=[nan]) is False
    assert value("x[0] in x", x=[nan]) is False


def test_an_int_and_a_double_do_not_add_and_the_message_says_what_helps() -> None:
    message = str(refusal("5.0 + 1"))
    assert "double + int" in message
    assert "double()" in message
    assert "int()" in message


@pytest.mark.parametrize(
    "text",
    ["x + 1", "-2 - x", "x * 2", "-(-x - 1)", "(-x - 1) / -1", "0u - 1u", "math.abs(-x - 1)"],
)
def test_integers_overflow_loudly(text: str) -> None:
    assert "64 bits" in refusal(text, x=2**63 - 1).message


@pytest.mark.rule("D-28")
@pytest.mark.parametrize(
    "text", ["x", "x + 1", "x == 1", "d.n", "l.map(i, i)", "l[0]", "d.?n.value()"]
)
def test_an_integer_beyond_64_bits_is_an_error_that_names_the_variable(text: str) -> None:
    big = 2**63
    error = refusal(text, x=big, d={"n": big}, l=[big])
    told = {"l.map(i, i)": "an item that map() reads", "l[0]": "l[0]", "d.n": "d.n"}
    name = told.get(text, "n" if text == "d.?n.value()" else "x")
    assert error.message.startswith(f"{name} is an integer beyond 64 bits")


def test_a_missing_key_is_an_error_and_null_is_a_value() -> None:
    assert value("x.a", x={"a": None}) is None
    assert refusal("x.b.c", x={"a": None}).message == "no such key: x.b"
    assert value("has(x.a)", x={"a": None}) is True
    assert refusal("y.a", x={}).message == "no such variable: y"
    assert refusal("x.a.b", x={"a": None}).message == "no such field: `b` of null"
    assert "`b` of a value of type int" in refusal("x.a.b", x={"a": 1}).message


def test_nothing_of_the_context_is_copied() -> None:
    rows = [{"n": 1}]
    assert value("x.rows", x={"rows": rows}) is rows
    assert value("x.rows.filter(r, r.n == 1)", x={"rows": rows})[0] is rows[0]


def test_a_lazy_mapping_is_asked_only_for_what_is_read() -> None:
    lazy = Lazy({"a": {"b": 1}, "huge": 2})
    assert value("m.a.b + 1", m=lazy) == 2
    assert lazy.asked == ["a"]
    assert value("has(m.q) || 'huge' in m", m=lazy) is True
    assert value("m.?q.orValue(3)", m=lazy) == 3


def test_a_lazy_mapping_may_say_in_its_own_words_why_a_key_is_missing() -> None:
    lazy = Lazy({}, words="task b was skipped")
    assert refusal("m.b.output", m=lazy).message == "task b was skipped"
    assert refusal("m['b']", m=lazy).message == "task b was skipped"
    assert refusal("m[k]", m=lazy, k="b").message == "task b was skipped"
    assert refusal("m.b", m=Lazy({})).message == "no such key: m.b"


def test_the_variables_themselves_may_be_a_lazy_mapping() -> None:
    assert compile_expression("a + 1").evaluate(Lazy({"a": 1})) == 2
    with pytest.raises(ExprError, match="no such variable: b"):
        compile_expression("b").evaluate(Lazy({"a": 1}))


def test_times_of_python_become_timestamps() -> None:
    when = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
    assert value("t + duration('1h') > t", t=when) is True
    assert value("t.getHours('+02:00')", t=when) == 14
    assert value("string(d)", d=datetime.timedelta(seconds=1.5)) == "1.500s"
    assert "time zone" in refusal("t", t=when.replace(tzinfo=None)).message


def test_other_python_values_are_refused_by_name() -> None:
    assert "x is a Python object" in refusal("x", x=object()).message
    assert value("x[0]", x=("a",)) == "a"


def test_an_error_knows_its_line_and_column() -> None:
    error = refusal("x.a +\n  x.missing", x={"a": 1})
    assert (error.line, error.column) == (2, 5)
    assert error.source == "x.a +\n  x.missing"
    assert "line 2, column 5" in str(error)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("1 +", 1, 4), ("(1", 1, 3), ("a b", 1, 3), ("'abc", 1, 1), ("1 = 2", 1, 3),
        ("a.true", 1, 3),
        ("[1,,2]", 1, 4), ("\n  &", 2, 3), ("9223372036854775808", 1, 1), ("'\\q'", 1, 1),
        ("if", 1, 1), ("has(x)", 1, 1), ("[1].map(x.y, 1)", 1, 11), ("f{a: 1}", 1, 2), ("", 1, 1),
    ],
)  # fmt: skip
def test_a_syntax_error_points_at_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(ExprError) as caught:
        compile_expression(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_logic_excuses_a_fault_that_the_other_side_decides() -> None:
    assert value("x.missing > 1 || true", x={}) is True
    assert value("false && x.missing > 1", x={}) is False
    assert refusal("x.missing > 1 && true", x={}).message == "no such key: x.missing"


def test_the_kinds_of_cel_have_types_of_their_own() -> None:
    assert type(value("1u + 2u")) is Uint
    assert value("timestamp(1)") == Timestamp(1_000_000_000)
    assert value("duration('1ms')") == Duration(1_000_000)
    assert value("optional.of(1)") == Maybe(present=True, value=1)
    assert value("type(1) == int && type('') == string && type(null) == null_type") is True


def test_functions_that_do_not_exist_are_refused_when_the_caller_asks() -> None:
    with pytest.raises(ExprError, match=r"no such function: matchs\(\); did you mean matches"):
        compile_expression("x.matchs('a')", check=True)
    with pytest.raises(ExprError, match="number of arguments"):
        compile_expression("size(1, 2)", check=True)
    with pytest.raises(ExprError, match="the pattern cannot be used"):
        compile_expression("x.matches('(')", check=True)
    assert value("f(1) || true") is True
