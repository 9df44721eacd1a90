"""Functions and macros beyond what the official binding knows: lists, two-variable forms, times."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.expr import ExprError, compile_expression


def value(text: str, **variables: Any) -> Any:
    return compile_expression(text).evaluate(variables)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("['b', 'a'].sort()", ["a", "b"]),
        ("[].sort()", []),
        ("rows.sortBy(r, r.n).map(r, r.id)", ["b", "c", "a"]),
        ("[1, 1, 2, 1.0, 'a', 'a', true, true].distinct()", [1, 2, "a", True]),
        ("[[1], [1], {'a': 1}, {'a': 1}].distinct()", [[1], {"a": 1}]),
        ("[1, [2, [3]]].flatten()", [1, 2, [3]]),
        ("[1, [2, [3]]].flatten(2)", [1, 2, 3]),
        ("[1, 2, 3, 4].slice(1, 3)", [2, 3]),
        ("[1, 2].reverse()", [2, 1]),
        ("lists.range(3)", [0, 1, 2]),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("[].first().hasValue()", False),
        ("['a', 'b'].transformList(i, v, string(i) + v)", ["0a", "1b"]),
        ("['a', 'b'].transformList(i, v, i > 0, v)", ["b"]),
        ("{'a': 1, 'b': 2}.transformList(k, v, k + string(v))", ["a1", "b2"]),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v * 10)", {"a": 10, "b": 20}),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v)", {"b": 2}),
        ("{'a': 'x'}.transformMapEntry(k, v, {v: k})", {"x": "a"}),
        ("['x', 'y'].transformMapEntry(i, v, {v: i})", {"x": 0, "y": 1}),
        ("[5, 6].exists(i, v, i == 1 && v == 6)", True),
        ("{'a': 1}.all(k, v, k == 'a' && v == 1)", True),
        ("[1, 2].existsOne(i, v, v > 1)", True),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("'%s is %d, %.1f%%'.format(['a', 2, 3.25])", "a is 2, 3.2%"),
        ("math.greatest(1, 2.5, 2u)", 2.5),
        ("base64.decode(base64.encode(b'hi')) == b'hi'", True),
    ],
)
def test_extension_functions(text: str, expected: Any) -> None:
    rows = [{"id": "a", "n": 3}, {"id": "b", "n": 1}, {"id": "c", "n": 2}]
    assert value(text, rows=rows) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1, 'a'].sort()", "several kinds"),
        ("[null].sort()", "no such overload"),
        ("[1].slice(1, 3)", "outside the list"),
        ("[1].flatten(-1)", "negative"),
        ("{'a': 1, 'b': 1}.transformMapEntry(k, v, {'same': v})", "same key twice"),
        ("{'a': 1}.transformMapEntry(k, v, v)", "needs a map"),
        ("[1].filter(x, x)", "needs a condition"),
        ("1.map(x, x)", "over a value of type int"),
        ("'%d'.format(['a'])", "no meaning for string"),
        ("'%d'.format([])", "no argument 1"),
        ("{1.5: 'a'}", "cannot be the key"),
        ("optional.none().value()", "orValue"),
        ("1.orValue(2)", "optionals"),
        ("int('twelve')", "not an int"),
        ("timestamp('2026-02-30T00:00:00Z')", "no calendar"),
        ("timestamp('2026-01-01T25:00:00Z')", "no clock"),
        ("timestamp(0).getHours('Nowhere/Land')", "no such time zone"),
        ("timestamp(0).getHours('../../etc/passwd')", "no such time zone"),
        ("duration('1 day')", "not a duration"),
    ],
)
def test_errors_say_why(text: str, why: str) -> None:
    with pytest.raises(ExprError, match=why):
        value(text)


def test_a_shadowed_name_means_the_innermost() -> None:
    assert value("[1].map(x, [2].map(x, x))", x=5) == [[2]]
    assert value("[1].map(y, x + y) + [x]", x=5) == [6, 5]


def test_a_bound_value_is_computed_once_and_only_when_read() -> None:
    assert value("cel.bind(v, 1 / 0, true)") is True
    assert value("cel.bind(v, x.a, [v, v].map(i, i + v))", x={"a": 2}) == [4, 4]
    assert value("[1, 2].map(i, cel.bind(v, i * 10, v + v))") == [20, 40]


def test_time_zones_and_their_summer() -> None:
    assert value("timestamp('2026-07-01T12:00:00Z').getHours('Europe/Paris')") == 14
    assert value("timestamp('2026-01-01T12:00:00Z').getHours('Europe/Paris')") == 13
    assert value("timestamp('2026-01-01T23:30:00Z').getDate('Asia/Kathmandu')") == 2


def test_a_message_never_repeats_a_value() -> None:
    for text in ("int(x)", "x + 1", "timestamp(x)", "x.y", "x > 1", "bool(x)", "base64.decode(x)"):
        with pytest.raises(ExprError) as caught:
            value(text, x="s3cr#t")
        assert "s3cr#t" not in str(caught.value)
