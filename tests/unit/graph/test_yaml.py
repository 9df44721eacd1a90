"""YAML in: the same documents as in JSON, and none of YAML's surprises."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.graph import Graph, lint
from perdure.graph.read import MAX_DEPTH
from perdure.graph.source import format_of
from perdure.graph.yaml_nodes import MAX_TEXT, MAX_VALUES, compose
from perdure.graph.yaml_values import value_of
from perdure.model.errors import GraphError
from perdure.model.graph_rules import Finding
from tests.unit.graph.documents import ORDER

TEXT = """\
# From order to parcel.
name: order
nodes:
  - id: fetch
    type: HTTP
    spec: {url: "https://shop.test/api/{{input.order_id}}"}
    retry: {attempts: 3}
  - {id: route, type: SWITCH}
  - {id: review, type: TASK, spec: {step: review, input: {by: ann}}}
  - id: ship
    type: TASK
    spec: {step: ship-order, input: {order: "{{tasks.fetch.output.body}}"}}
edges:
  - {from: fetch, to: route}
  - {from: route, to: review, condition: "{{tasks.fetch.output.body.total > 1000}}"}
  - {from: route, to: ship, default: true}
  - {from: review, to: ship}
"""
OUTPUT = 'output: {tracking: "{{tasks.ship.output}}"}\n'


def value(text: str) -> Any:
    """What a text says; nothing in it may be wrong."""
    findings: list[Finding] = []
    result = value_of(compose(text), findings)
    assert findings == []
    return result


def refused(text: str | bytes) -> Finding:
    """The one problem of a text."""
    with pytest.raises(GraphError) as caught:
        Graph.load(text, format="yaml")
    (problem,) = caught.value.problems
    return problem


@pytest.mark.rule("D-36")
@pytest.mark.parametrize(
    "text",
    [
        TEXT + OUTPUT,
        (TEXT + OUTPUT).encode(),
        "\ufeff" + TEXT + OUTPUT,
        (TEXT + OUTPUT).replace("\n", "\r\n"),
        "%YAML 1.2\n---\n" + TEXT + OUTPUT + "...\n",
        json.dumps(ORDER),
        json.dumps(ORDER, indent=2, ensure_ascii=True),
        yaml.safe_dump(ORDER),
        yaml.safe_dump(ORDER, default_flow_style=True, width=10),
    ],
)
def test_a_document_in_yaml_is_the_definition_it_is_in_json(text: str | bytes) -> None:
    graph = Graph.load(text, format="yaml")
    assert graph.source == Graph.load(ORDER).source
    assert graph.hash == Graph.load(ORDER).hash


SCALARS: list[tuple[str, Any]] = [
    *((word, word) for word in ("yes", "no", "on", "off", "y", "n", "NO", "Yes", "tRUE")),
    *((word, True) for word in ("true", "True", "TRUE")),
    *((word, False) for word in ("false", "False", "FALSE")),
    *((word, None) for word in ("null", "Null", "NULL", "~", "")),
    *((word, word) for word in ("24h", "1h30m", "12:30:00", "2025-06-01", "1_000", "0b11", "1e")),
    *((word, word) for word in ("2025-06-01T12:00:00Z", "0xg", "1.2.3", "-a", ".", "=", "none")),
    *[("0", 0), ("-0", 0), ("12", 12), ("-12", -12), ("+12", 12), ("0o17", 15), ("0x1F", 31)],
    *[("1.0", 1.0), ("1e3", 1000.0), ("1E-3", 0.001), (".5", 0.5), ("5.", 5.0), ("-1.5", -1.5)],
    *[('"1"', "1"), ("'true'", "true"), ('"null"', "null"), ('""', ""), ("'~'", "~")],
    *[('"\\u00e4\\ud834\\udd1e"', "ä𝄞"), ('"a\\/b"', "a/b"), ("'it''s'", "it's")],
]


@pytest.mark.parametrize(("written", "meant"), SCALARS)
def test_a_scalar_means_what_the_core_schema_says(written: str, meant: Any) -> None:
    for text in (f"a: {written}\n", f"a:\n  {written}\n", f"{{a: {written}}}"):
        got = value(text)["a"]
        assert (got, type(got)) == (meant, type(meant))


def test_text_of_several_lines_is_folded_or_kept() -> None:
    said = value("a: |\n  one\n  two\nb: >-\n  one\n  two\nc: one\n  two\n")
    assert said == {"a": "one\ntwo\n", "b": "one two", "c": "one two"}


def test_an_alias_is_a_copy_of_what_it_names() -> None:
    text = "a: &x {n: 1}\nb: *x\nc: [*x, &t text, *t]\n"
    assert value(text) == {"a": {"n": 1}, "b": {"n": 1}, "c": [{"n": 1}, "text", "text"]}


LIKE = [written for written, _ in SCALARS] + ["- a", "a: b", "#", "{{x}}", " ", "\n"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.sampled_from(LIKE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


class Quoting(yaml.SafeDumper):
    """Writes all text in quotes: which text may stand without them it judges by older rules."""


Quoting.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


@settings(deadline=None)
@given(JSON, st.booleans())
def test_every_value_comes_back_from_the_yaml_it_is_written_in(mine: Any, flow: bool) -> None:
    got = value(yaml.dump(mine, Dumper=Quoting, default_flow_style=flow))
    assert json.dumps(got, sort_keys=True) == json.dumps(mine, sort_keys=True)


@settings(deadline=None)
@given(JSON, st.sampled_from([None, 1]))
def test_json_is_yaml(mine: Any, indent: int | None) -> None:
    got = value(json.dumps(mine, indent=indent))
    assert json.dumps(got, sort_keys=True) == json.dumps(mine, sort_keys=True)


QUOTES = 'a template is not in quotes, and to YAML { begins a mapping; write "{{ … }}" in quotes'


@pytest.mark.parametrize(
    ("tail", "column"),
    [
        ("output: {{tasks.ship.output}}", 9),
        ('output: {{tasks["ship"].output}}', 9),
        ("output: {{ input.a ? input.b : input.c }}", 9),
        ("output: {{input.a}} and more", 9),
        ("output: [ {{input.a}} ]", 11),
        ("output: {a: text {{input.a}}}", 18),
        ("output: {{input.a + 'x'}}", 9),
        ("output:\n  {{input.a}}", 3),
        ("output:\n- {{input.a}}\n- b", 3),
    ],
)
def test_a_template_outside_quotes_is_refused_where_it_stands(tail: str, column: int) -> None:
    problem = refused(TEXT + tail)
    assert problem.text == QUOTES
    assert (problem.line, problem.column) == (18 + tail.count("\n", 0, tail.find("{{")), column)


def test_a_template_inside_plain_text_needs_no_quotes() -> None:
    text = TEXT.replace(
        '{url: "https://shop.test/api/{{input.order_id}}"}',
        "\n      url: https://shop.test/api/{{input.order_id}}",
    )
    assert Graph.load(text + OUTPUT, format="yaml").hash == Graph.load(ORDER).hash


REFUSED = [
    ("a: 1\n\tb: 2", (2, 1), "a tab; YAML is indented by spaces alone"),
    ("a:\n\t- 1", (2, 1), "a tab"),
    ("a: 1\n---\nb: 2", (2, 1), "a second document begins here; keep one in a file"),
    ("a: *b", (1, 4), "*b names no anchor; &b is to stand before it"),
    ("a: &b [1, *b]", (1, 11), "*b stands inside what it names"),
    ("a: &b {c: *b}", (1, 11), "*b stands inside what it names"),
    ("? [a]\n: b", (1, 3), "a list or a mapping cannot be a key"),
    ("{[a]: b}", (1, 2), "a list or a mapping cannot be a key"),
    ("a: &b [c]\n*b : d", (2, 1), "a list or a mapping cannot be a key"),
    ("a: b: c", (1, 5), "a colon that cannot stand here"),
    ("a\nb: c", (2, 2), "a colon that cannot stand here"),
    ("a: 'b\nc: d\n", (1, 4), "a quote is never closed"),
    ('a: "b', (1, 4), "a quote is never closed"),
    ('a: "\\q"', (1, 6), "a backslash that escapes nothing; write \\\\"),
    ('a: "\\UFFFFFFFF"', (1, 7), "an escape that names no character"),
    ("a: {b: 1", (1, 9), "a list or mapping in brackets does not go on like this"),
    ("a: [", (1, 5), "a value is missing, or a bracket is never closed"),
    ("a: 'b' c", (1, 8), "this does not fit the lines above it"),
    ("a: @b", (1, 4), "text cannot begin with @"),
    ("a: `b`", (1, 4), "text cannot begin with `"),
    ("a: %b", (1, 4), "text cannot begin with %"),
    ("%YAML 2.0\n---\na: 1", (1, 1), "a version of YAML that nobody knows"),
    ("a: !x!y b", (1, 4), "a tag"),
    ("a: \x00", (1, 4), "the character U+0000 cannot stand in a document"),
    ("a: b\x85c", (1, 5), 'U+0085 is a line break to some readers of YAML only; write "\\x85"'),
    ("a: \u2028", (1, 4), 'write "\\u2028" in double quotes'),
    ("a: \ud800", (1, 4), "the character U+D800 cannot stand"),
    ("[" * 100_000, (1, 66), f"nested more than {MAX_DEPTH} levels deep"),
    ("{a: " * 100_000, (1, 261), f"nested more than {MAX_DEPTH} levels deep"),
    ("- " * 100_000, (1, 131), f"nested more than {MAX_DEPTH} levels deep"),
    ("", (0, 0), "the document is empty"),
    ("# nothing\n---\n", (3, 1), "the document is null, not an object"),
    ("- a", (1, 1), "the document is a list, not an object"),
    ("order.yaml", (1, 1), "the document is a string, not an object"),
    ("#" * (MAX_TEXT + 1), (0, 0), "at most 1,048,576 count in YAML; write it as JSON"),
    ("[" + "1," * MAX_VALUES, (1, 2 * MAX_VALUES), "60,000 values and keys, the most that count"),
    (b"a: \xff", (1, 4), "not UTF-8: byte 3 (0xff)"),
    ("a: b".encode("utf-16"), (1, 1), "not UTF-8: byte 0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "message"), REFUSED)
def test_what_cannot_be_read_is_refused_with_its_place(
    text: str | bytes, place: tuple[int, int], message: str
) -> None:
    problem = refused(text)
    assert message in problem.text
    assert (problem.line, problem.column) == place


WRONG = [
    ("output: .inf", "/output", 9, "inf is not a number of JSON"),
    ("output: [.nan]", "/output/0", 10, "nan is not a number of JSON"),
    ("output: 1e999", "/output", 9, "inf is not a number of JSON"),
    ("output: 9223372036854775808", "/output", 9, "an integer beyond 64 bits"),
    (f"output: {'9' * 10_000}", "/output", 9, "an integer beyond 64 bits"),
    (f"output: 0x{'f' * 10_000}", "/output", 9, "an integer beyond 64 bits"),
    ("output: 010", "/output", 9, "010 has a zero first"),
    ("output: !!python/name:os.system x", "/output", 9, "the tag !!python/name:os.system says"),
    ("output: !!python/object/apply:os.system [x]", "/output", 1, "says nothing here"),
    ("output: !!str 1", "/output", 9, "the tag !!str says nothing here"),
    ("output: ! 1", "/output", 9, "the tag ! says nothing here"),
    ("output: {1: a}", "/output/1", 10, "the key 1 is not text; put it in quotes"),
    ("output: {true: a}", "/output/true", 10, "the key true is not text"),
    ("output: {~: a}", "/output/~0", 10, "the key ~ is not text"),
    ("output: {? , b: 1}", "/output/", 11, "the key that is missing here is not text"),
    ("output: {!!str a: b}", "/output/a", 10, "a tag at a key says nothing"),
    ("output: {<<: {a: b}}", "/output/<<", 10, "merge keys are not part of YAML 1.2"),
    ("output: {a: 1, a: 2}", "/output/a", 16, "this key is written more than once; keep one"),
    ("output: {a: 1, 'a': 1}", "/output/a", 16, "this key is written more than once"),
    ('output: "\\ud800"', "/output", 9, "half a surrogate pair"),
]


@pytest.mark.parametrize(("tail", "pointer", "column", "message"), WRONG)
def test_a_value_that_json_cannot_hold_is_a_problem_of_its_place(
    tail: str, pointer: str, column: int, message: str
) -> None:
    problem = refused(TEXT + tail)
    assert message in problem.text
    assert (problem.pointer, problem.line, problem.column) == (pointer, 18, column)


def test_a_quoted_key_of_two_less_than_signs_is_a_key() -> None:
    assert value('{"<<": {"a": 1}}') == {"<<": {"a": 1}}


@pytest.mark.parametrize("word", ["yes", "no", "on", "Off", "'true'"])
def test_where_a_truth_value_is_expected_the_words_of_older_yaml_get_a_hint(word: str) -> None:
    problem = refused(TEXT.replace("default: true", f"default: {word}") + OUTPUT)
    assert problem.hint == "write true or false, without quotes"
    assert (problem.pointer, problem.line, problem.column) == ("/edges/2/default", 16, 38)


@pytest.mark.parametrize(
    "lines",
    [
        ["a: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 40)],
        [f"a: &a0 {'x' * 100_000}", f"b: [{', '.join(['*a0'] * 1000)}]"],
        [f"a: &a0 {{{'x' * 1000}: 1}}", f"b: [{', '.join(['*a0'] * 10_000)}]"],
    ],
)
def test_aliases_that_grow_without_end_are_refused(lines: list[str]) -> None:
    problem = refused("\n".join(lines))
    assert problem.text.startswith("the document grows too large here")
    assert problem.line > 1


def test_aliases_cannot_get_around_the_depth() -> None:
    deep = "a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 30 + "*a" + "]" * 30
    problem = refused(deep)
    assert "levels deep" in problem.message
    assert (problem.line, problem.column) == (2, 34)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    problem = refused(TEXT)
    assert problem.text == "documents in YAML need the extra [yaml]; pip install 'perdure[yaml]'"
    assert Graph.load(ORDER).name == "order"


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.yaml", b"", "yaml"),
        ("A.YML", b"", "yaml"),
        ("a.json", b"", "json"),
        ("a", b"", "json"),
        ("-", b" \n{", "json"),
        ("-", b"\xef\xbb\xbf{", "json"),
        ("-", b"a: b", "yaml"),
        ("-", b"", "yaml"),
    ],
)
def test_the_format_is_told_by_the_name_or_by_the_beginning(
    name: str, text: bytes, form: str
) -> None:
    assert format_of(name, text) == form


def test_json_that_is_no_json_but_looks_like_yaml_is_told_of_the_format() -> None:
    with pytest.raises(GraphError, match='is loaded with format="yaml"'):
        Graph.load(TEXT)


PIECES = st.sampled_from(
    [
        "\n",
        " ",
        "  ",
        ": ",
        "- ",
        "? ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "&a ",
        "*a",
        "!",
        "!!str ",
        "|",
        ">",
        "'",
        '"',
        "#",
        "%YAML 1.1\n",
        "---\n",
        "...\n",
        "<<",
        "\\",
        "\\x4",
        "\\U00110000",
        "\t",
        "@",
        "`",
        "{{",
        "}}",
        "a",
        "1",
        "true",
        "~",
        "\ufeff",
        "\x85",
        "\u2028",
        "\x00",
        "\ud800",
        "name: x\n",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.binary() | st.text() | st.lists(PIECES, max_size=30).map("".join))
@example('a: "\\UFFFFFFFF"')
@example("%TAG ! \\\n---\n!%ff a")
@example("? ? ? ? a")
def test_whatever_comes_in_comes_out_as_a_definition_or_a_graph_error(text: str | bytes) -> None:
    for finding in lint(text, format="yaml"):
        assert str(finding)
        assert (finding.line > 0) == (finding.column > 0)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_spoiled_document_loads_or_is_refused(data: st.DataObject) -> None:
    text = TEXT + OUTPUT
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 10))
    piece = data.draw(PIECES | st.text(max_size=3))
    lint(text[:at] + piece + text[at + cut :], format="yaml")
