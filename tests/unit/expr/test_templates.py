"""Templates: where an expression ends, what it becomes, what is never touched."""

from __future__ import annotations

import math
from typing import Any

import pytest

from perdure.expr import ExprError, TemplateErrors, compile_template, reveal

SCOPE: dict[str, Any] = {
    "input": {
        "name": "Ann", "n": 3, "x": 1.5, "big": 1e6, "t": True, "none": None,
        "list": [1, {"a": "é"}], "braces": "{{ input.name }}", "nan": math.nan, "huge": 2**64,
    }
}  # fmt: skip


def render(value: Any, scope: dict[str, Any] | None = None) -> Any:
    return compile_template(value).render(SCOPE if scope is None else scope)


def refusal(value: Any) -> ExprError:
    template = compile_template(value)
    with pytest.raises(ExprError) as caught:
        template.render(SCOPE)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ input.n }}", 3),
        ("{{input.x}}", 1.5),
        ("{{ input.t }}", True),
        ("{{ input.none }}", None),
        ("{{ input.list }}", [1, {"a": "é"}]),
        ("{{ input.n > 2 ? 'many' : 'few' }}", "many"),
    ],
)
def test_a_string_that_is_one_expression_keeps_the_type(text: str, expected: Any) -> None:
    result = render(text)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi {{ input.name }}!", "Hi Ann!"),
        (" {{ input.n }}", " 3"),
        ("{{ input.n }}{{ input.x }}", "31.5"),
        ("{{ input.t }} {{ input.big }} {{ 7u }}", "true 1e+06 7"),
        ("got {{ input.list }}", 'got [1,{"a":"é"}]'),
        ("at {{ timestamp(0) }}, {{ duration('90s') }}", "at 1970-01-01T00:00:00Z, 90s"),
        ("[{{ b'hi' }}]", "[aGk=]"),
    ],
)
def test_text_around_makes_a_string(text: str, expected: str) -> None:
    assert render(text) == expected


def test_null_inside_a_text_is_an_error_that_says_what_would_help() -> None:
    message = str(refusal("value: {{ input.none }}"))
    assert "orValue()" in message
    assert "string()" in message
    assert "default" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{{ {"a": {"b": 1}} }}', {"a": {"b": 1}}),
        ('{{{"a":{"b":1}}}}', '{{{"a":{"b":1}}}}'.replace("{{{", '{{{', 1)),
        ('{{ "}}" }}', "}}"),
        ("{{ '{{' }}", "{{"),
        ('{{ {"a": "}}"} }} }}', '{"a":"}}"} }}'),
        ("{{ 1 // }}\n }}", 1),
        ("{{ [{'a': 1}][0].a }}", 1),
        ("a }} b", "a }} b"),
    ],
)  # fmt: skip
def test_the_end_of_an_expression_is_found_by_reading_it(text: str, expected: Any) -> None:
    if text.startswith('{{{"'):
        # Four opening braces would be a literal; three are an expression that is a map.
        assert render('{{{"a":{"b":1}}}}') == {"a": {"b": 1}}
        return
    assert render(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{{{", "{{"),
        ("{{{{ input.name }}", "{{ input.name }}"),
        ("{{{{{{ input.name }}", "{{Ann"),
        ("{{ input.name }}{{{{ x }}", "Ann{{ x }}"),
    ],
)
def test_four_braces_are_two_literal_ones(text: str, expected: str) -> None:
    assert render(text) == expected


def test_a_text_put_in_is_never_scanned_again() -> None:
    assert render("{{ input.braces }}") == "{{ input.name }}"
    assert render("a {{ input.braces }}") == "a {{ input.name }}"


def test_keys_are_not_templates() -> None:
    assert render({"{{ input.name }}": "{{ input.n }}"}) == {"{{ input.name }}": 3}


def test_a_constant_template_gives_the_same_object() -> None:
    value = {"a": [1, None, "text", {"b": True}]}
    template = compile_template(value)
    assert template.constant
    assert template.render({}) is value
    assert not compile_template({"a": "{{ 1 }}"}).constant


def test_only_what_holds_a_template_is_copied() -> None:
    value = {"constant": [1, 2], "rendered": ["{{ input.n }}", 2]}
    out = render(value)
    assert out == {"constant": [1, 2], "rendered": [3, 2]}
    assert list(out) == ["constant", "rendered"]
    assert out["constant"] is value["constant"]
    assert value["rendered"] == ["{{ input.n }}", 2]
    assert render("{{ input.list }}") is SCOPE["input"]["list"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ 5u }}", 5),
        ("{{ [timestamp(0), duration('3500ms'), b'hi', 2u] }}",
         ["1970-01-01T00:00:00Z", "3.500s", "aGk=", 2]),
        ("{{ {1: 'a', true: 'b'} }}", {"1": "a", "true": "b"}),
    ],
)  # fmt: skip
def test_what_json_does_not_have_becomes_json(text: str, expected: Any) -> None:
    out = render(text)
    assert out == expected
    assert type(out) is type(expected)


@pytest.mark.rule("D-28")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ input.nan }}", "finite"),
        ("{{ input }}", "finite"),
        ("x {{ [input.nan] }}", "finite"),
        ("x {{ 1.0 / 0.0 }}", "finite"),
        ("{{ input.huge }}", "beyond 64 bits"),
        ("{{ [input.huge] }}", "beyond 64 bits"),
        ("{{ input.?name }}", "optional"),
        ("{{ [optional.none()] }}", "optional"),
        ("{{ type(1) }}", "cannot be a result"),
    ],
)
def test_what_json_cannot_hold_is_an_error(text: str, why: str) -> None:
    assert why in refusal(text).message


def test_a_large_integer_inside_a_whole_result_is_refused() -> None:
    with pytest.raises(ExprError, match="beyond 64 bits"):
        render("{{ input }}", {"input": {"deep": [{"n": 2**64}]}})


def test_an_error_names_the_pointer_the_place_and_the_expression() -> None:
    error = refusal({"body": {"a/b~c": ["x", "to {{ input.name }}:\n{{ input.missing }}"]}})
    assert error.pointer == "/body/a~1b~0c/1"
    assert (error.line, error.column) == (2, 10)
    assert error.message == "no such key: input.missing"
    for part in ("/body/a~1b~0c/1", "line 2, column 10", "{{ input.missing }}"):
        assert part in str(error)


def test_every_problem_of_a_value_is_reported_together() -> None:
    with pytest.raises(TemplateErrors) as caught:
        compile_template(
            {"a": "{{ 1 + }}", "b": ["{{ x", "fine"], "c": "{{ foo(1) }} {{ x.matches('(') }}"}
        )
    problems = caught.value.problems
    assert [pointer for pointer, _ in problems] == ["/a", "/b/0", "/c", "/c"]
    assert [(error.line, error.column) for _, error in problems] == [
        (1, 8),
        (1, 1),
        (1, 4),
        (1, 19),
    ]
    assert all(error.pointer == pointer for pointer, error in problems)
    assert str(caught.value).count("\n") == 3


@pytest.mark.parametrize("text", ["{{ }}", "{{", "{{ x }", "{{ x } }}", "{{ 'a }}", "a {{ x"])
def test_an_expression_that_does_not_end_or_is_empty_is_refused(text: str) -> None:
    with pytest.raises(TemplateErrors):
        compile_template(text)


def test_the_parts_are_there_for_lint() -> None:
    template = compile_template({"a": "{{ input.x }} {{ tasks.t.output }}", "b": "plain"})
    [(pointer, text, refs, programs)] = template.parts
    assert (pointer, text) == ("/a", "{{ input.x }} {{ tasks.t.output }}")
    assert refs.roots == {"input", "tasks"}
    assert [program.refs.roots for program in programs] == [{"input"}, {"tasks"}]


def test_a_value_nested_too_deeply_is_refused() -> None:
    deep: Any = "{{ 1 }}"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(TemplateErrors, match="nested deeper"):
        compile_template(deep)


def test_a_string_with_a_secret_is_left_as_it_is_and_told() -> None:
    value = {"auth": "Bearer {{ secrets.KEY }}", "to": "{{ input.name }}"}
    template = compile_template(value)
    assert template.secrets == {"/auth": "Bearer {{ secrets.KEY }}"}
    assert template.refs.secrets == {"KEY"}
    assert template.render(SCOPE) == {"auth": "Bearer {{ secrets.KEY }}", "to": "Ann"}


def test_a_string_that_reads_a_secret_may_read_nothing_else() -> None:
    with pytest.raises(TemplateErrors, match=r"may read nothing else, and this one reads input"):
        compile_template({"a": "{{ input.name }} {{ secrets.KEY }}"})


def test_reveal_puts_secrets_in_and_changes_nothing() -> None:
    value = {"h": {"auth": "Bearer {{ secrets.KEY }}", "x": [1]}, "l": ["{{ secrets.B }}"], "n": 1}
    template = compile_template(value)
    rendered = template.render({})
    out = reveal(rendered, template.secrets, {"KEY": "k1", "B": "{{ secrets.KEY }}"})
    assert out == {"h": {"auth": "Bearer k1", "x": [1]}, "l": ["{{ secrets.KEY }}"], "n": 1}
    assert rendered["h"]["auth"] == "Bearer {{ secrets.KEY }}"
    assert reveal("{{ secrets.K }}", {"": "{{ secrets.K }}"}, {"K": "v"}) == "v"


def test_an_error_of_reveal_never_holds_a_secret() -> None:
    value = {"a": "{{ secrets[secrets.KEY] }}"}
    template = compile_template(value)
    with pytest.raises(ExprError) as caught:
        reveal(template.render({}), template.secrets, {"KEY": "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert caught.value.pointer == "/a"
    with pytest.raises(ExprError, match=r"no such key: secrets\.KEY"):
        reveal({"a": ""}, {"/a": "{{ secrets.KEY }}"}, {})
    with pytest.raises(ExprError, match="no place"):
        reveal({}, {"/a": "{{ secrets.KEY }}"}, {"KEY": "hunter2"})
