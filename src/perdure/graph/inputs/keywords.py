"""The keywords that a document's `input` schema may have, and what the simple ones may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from perdure.graph.form import named
from perdure.model.guesses import did_you_mean

TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
ANNOTATIONS: Final = (
    *("$schema", "$comment", "title", "description", "default", "examples"),
    *("deprecated", "readOnly", "writeOnly"),
)
NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
COUNTS: Final = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
#: Keywords that hold a schema, a list of schemas, schemas by name.
ONE: Final = (
    *("additionalProperties", "propertyNames", "additionalItems", "contains"),
    *("not", "if", "then", "else"),
)
SEVERAL: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
BY_NAME: Final = ("properties", "dependentSchemas")
DEFINITIONS: Final = ("$defs", "definitions")
REFUSED: Final = {
    "patternProperties": "use propertyNames with a pattern, and additionalProperties",
    "$id": "references are to places of this schema: #/$defs/name",
    "$dynamicRef": "use $ref",
    "$anchor": "refer to #/$defs/name",
}
KEYWORDS: Final = (
    *("type", "enum", "const", "pattern", "format", "required", "uniqueItems", "items", "$ref"),
    *("dependentRequired", "dependencies"),
    *(*NUMBERS, *COUNTS, *ONE, *SEVERAL, *BY_NAME, *DEFINITIONS, *ANNOTATIONS),
)
#: Those whose schemas are about the same value as the schema that they stand in.
SAME_VALUE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
#: Keywords that hold no schema. One with these alone is small, and stays where it is.
LEAF: Final = frozenset(
    {"type", "enum", "const", "pattern", "format", "required", "uniqueItems"}
).union(NUMBERS, COUNTS, ANNOTATIONS)
POINTER: Final = frozenset({"$ref", *ANNOTATIONS})

Wrong = tuple[str, str] | None


def _type(value: Any) -> Wrong:
    types = value if isinstance(value, list) and value else [value]
    for one in types:
        if not isinstance(one, str) or one not in TYPES:
            hint = did_you_mean(one, TYPES) if isinstance(one, str) else f"use {', '.join(TYPES)}"
            return f"{named(one)} is no type", hint
    return None if len(set(types)) == len(types) else ("a type is there twice", "keep one")


def _number(value: Any) -> Wrong:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None
    return f"this is {named(value)}, not a number", ""


def _multiple(value: Any) -> Wrong:
    return _number(value) or (None if value > 0 else ("this is not above 0", "use 1, or 0.01"))


def _count(value: Any) -> Wrong:
    if type(value) is int and value >= 0:
        return None
    return f"{named(value)} is no count", "use a whole number from 0"


def names_wrong(value: Any) -> Wrong:
    """What is wrong with a list of names of fields."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return f"this is {named(value)}, not a list of names", 'write ["order_id"]'
    return None if len(set(value)) == len(value) else ("a name is there twice", "keep one")


def _values(value: Any) -> Wrong:
    return (
        None if isinstance(value, list) and value else ("this is no list of values", "write some")
    )


def _truth(value: Any) -> Wrong:
    if isinstance(value, bool):
        return None
    return f"this is {named(value)}, not true or false", ""


RULES: Final[Mapping[str, Callable[[Any], Wrong]]] = {
    **dict.fromkeys(NUMBERS, _number),
    **dict.fromkeys(COUNTS, _count),
    "type": _type,
    "multipleOf": _multiple,
    "required": names_wrong,
    "enum": _values,
    "const": lambda value: None,
    "uniqueItems": _truth,
}
