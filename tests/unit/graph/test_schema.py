"""The JSON Schema of documents says yes to all that load, and no to what is misshapen."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given

from perdure.graph import Graph, json_schema
from perdure.graph.document import EDGE_KEYS, NODE_KEYS, RETRY_KEYS, TOP_KEYS
from perdure.graph.specs import HTTP_KEYS, TASK_KEYS
from perdure.graph.waits import EVENT_KEYS, SIGNAL_KEYS, WAIT_KEYS
from perdure.model.errors import GraphError
from tests.unit.graph.documents import ORDER, changed
from tests.unit.graph.test_check import LIKELY, spoiled_documents
from tests.unit.graph.test_document import WRONG
from tests.unit.graph.test_specs import HTTP, LONE
from tests.unit.graph.test_waits import GOOD as GOOD_WAITS
from tests.unit.graph.test_waits import WRONG as WRONG_WAITS
from tests.unit.graph.test_waits import lone

SCHEMA = json_schema()
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}


def is_a(kind: str, value: Any) -> bool:
    if kind in TYPES:
        return isinstance(value, TYPES[kind])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return kind == "number" or value == int(value)


def valid(value: Any, schema: dict[str, Any]) -> bool:
    """Whether the value is valid, by the keywords used here; an unknown keyword is an error."""
    return all(KEYWORDS[key](value, said, schema) for key, said in schema.items())


def _properties(value: Any, said: dict[str, Any], _: dict[str, Any]) -> bool:
    return not isinstance(value, dict) or all(
        valid(value[key], sub) for key, sub in said.items() if key in value
    )


def _additional(value: Any, said: Any, schema: dict[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    others = [member for key, member in value.items() if key not in schema.get("properties", {})]
    return not others if said is False else all(valid(member, said) for member in others)


def _if(value: Any, said: dict[str, Any], schema: dict[str, Any]) -> bool:
    return not valid(value, said) or valid(value, schema["then"])


def _number(value: Any) -> bool:
    return is_a("number", value)


KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(
        ("$schema", "title", "$defs", "description", "default", "then"), lambda *_: True
    ),
    "$ref": lambda v, s, _: valid(v, SCHEMA["$defs"][s.rpartition("/")[2]]),
    "type": lambda v, s, _: any(is_a(t, v) for t in ([s] if isinstance(s, str) else s)),
    "enum": lambda v, s, _: any(v == e and isinstance(v, bool) == isinstance(e, bool) for e in s),
    "anyOf": lambda v, s, _: any(valid(v, sub) for sub in s),
    "allOf": lambda v, s, _: all(valid(v, sub) for sub in s),
    "not": lambda v, s, _: not valid(v, s),
    "if": _if,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": lambda v, s, _: not isinstance(v, dict) or set(s) <= set(v),
    "maxProperties": lambda v, s, _: not isinstance(v, dict) or len(v) <= s,
    "items": lambda v, s, _: not isinstance(v, list) or all(valid(item, s) for item in v),
    "minItems": lambda v, s, _: not isinstance(v, list) or len(v) >= s,
    "maxItems": lambda v, s, _: not isinstance(v, list) or len(v) <= s,
    "minLength": lambda v, s, _: not isinstance(v, str) or len(v) >= s,
    "maxLength": lambda v, s, _: not isinstance(v, str) or len(v) <= s,
    "pattern": lambda v, s, _: not isinstance(v, str) or bool(re.search(s, v, re.ASCII)),
    "minimum": lambda v, s, _: not _number(v) or v >= s,
    "maximum": lambda v, s, _: not _number(v) or v <= s,
}

#: What only loading can tell: it needs more than one place, or reads templates and numbers.
BEYOND = re.compile(
    r"there is no node|is also that of|has one body|below initial|there twice|"
    r"client's own|not printable|a line break|a whole URL|http or https|a space or|30 days|"
    r"no time at all|cannot be a header|one body|200\.0 is"
)


def test_the_order_is_valid() -> None:
    assert valid(ORDER, SCHEMA)


def test_the_schema_is_plain_json_and_made_anew() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    json_schema()["properties"].clear()
    assert json_schema() == SCHEMA


@pytest.mark.parametrize(
    ("place", "keys"),
    [
        (SCHEMA, [key for key in TOP_KEYS if key != "config"]),
        (SCHEMA["$defs"]["node"], [key for key in NODE_KEYS if key != "queue"]),
        (SCHEMA["$defs"]["edge"], EDGE_KEYS),
        (SCHEMA["$defs"]["retry"], RETRY_KEYS),
        (SCHEMA["$defs"]["http"], HTTP_KEYS),
        (SCHEMA["$defs"]["task"], TASK_KEYS),
        (SCHEMA["$defs"]["wait"], WAIT_KEYS),
        (SCHEMA["$defs"]["wait_for_signal"], SIGNAL_KEYS),
        (SCHEMA["$defs"]["wait_for_event"], EVENT_KEYS),
    ],
)
def test_the_schema_has_the_keys_that_loading_knows(place: dict[str, Any], keys: Any) -> None:
    assert sorted(place["properties"]) == sorted(keys)
    assert place["additionalProperties"] is False


@pytest.mark.parametrize(
    ("pointer", "value"), [(p, v) for p, v, _, text in WRONG if not BEYOND.search(text)]
)
def test_a_misshapen_document_is_invalid(pointer: str, value: Any) -> None:
    assert not valid(changed(pointer, value), SCHEMA)


@pytest.mark.parametrize("changes", [spec for spec, _, text in HTTP if not BEYOND.search(text)])
def test_a_misshapen_request_is_invalid(changes: dict[str, Any]) -> None:
    spec = {"url": "https://shop.test/", **changes}
    spec = {key: value for key, value in spec.items() if value is not None or key != "url"}
    assert not valid(changed("/nodes/0/spec", spec, LONE), SCHEMA)


#: Of waits, what only loading can tell: sums of keys, calendars, very large numbers, secrets.
BEYOND_WAITS = re.compile(r"both say|is no time|secrets|says how long")


OVER = [{"duration_seconds": "9e999"}, {"duration_seconds": "-1"}]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (kind, spec) for kind, spec, _, text in WRONG_WAITS
        if not (BEYOND_WAITS.search(text) or spec in OVER)
    ],
)  # fmt: skip
def test_a_misshapen_wait_is_invalid(kind: str, spec: Any) -> None:
    assert not valid(lone(kind, spec), SCHEMA)


@pytest.mark.parametrize(("kind", "spec"), GOOD_WAITS)
def test_a_wait_that_loads_is_valid(kind: str, spec: Any) -> None:
    assert valid(lone(kind, spec), SCHEMA)


def loads(value: Any) -> bool:
    try:
        Graph.load(value)
    except GraphError:
        return False
    return True


@given(LIKELY)
def test_what_loads_is_valid(value: Any) -> None:
    assert valid(value, SCHEMA) or not loads(value)


@given(spoiled_documents())
def test_a_changed_order_that_loads_is_valid(value: Any) -> None:
    assert valid(value, SCHEMA) or not loads(value)
