"""What does not fit a schema, in words: the place, what is asked for, and what is there instead.

Values of inputs are not repeated: they may be nobody's business. Their kind is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from perdure.model.guesses import did_you_mean

_TYPES: Final = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
#: Fields too many that are named.
_FIELDS: Final = 10
#: Of a rule: what the value must be; {} is what the schema says.
_ASKED: Final = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "const": "must be {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} fields",
    "maxProperties": "must have at most {} fields",
    "uniqueItems": "must not have an item twice",
    "contains": "has no item such as the schema asks for",
    "propertyNames": "has a field whose name the schema does not let in",
    "anyOf": "fits none of the forms that the schema lets in",
    "oneOf": "must fit one of the forms of the schema, and one only",
    "not": "is what the schema does not let in",
    "items": "has more items than the schema lets in",
}


def in_words(error: Any, called: Mapping[str, str]) -> str:
    """One problem; `called`: what text of a format of ours is."""
    name, value, rule = str(error.name), error.value, str(error.rule)
    definition = error.definition if isinstance(error.definition, dict) else {}
    said = definition.get(rule)
    if rule == "type":
        types = said if isinstance(said, list) else [said]
        wanted = " or ".join(_TYPES.get(str(one), str(one)) for one in types)
        return f"{name} must be {wanted}, and is {kind_of(value)}"
    if rule == "required" and isinstance(value, dict):
        missing = [one for one in said or () if one not in value]
        return "; ".join(f'{name}: "{one}" is missing' for one in missing)
    if rule == "additionalProperties" and isinstance(value, dict):
        return _unknown(name, value, definition.get("properties") or {})
    if rule == "enum":
        shown = ", ".join(_shown(one) for one in said or ())
        return f"{name} must be one of {shown if len(shown) <= 300 else 'those of the schema'}"
    if rule == "format":
        return f"{name} must be {called.get(str(said), 'text of another form')}"
    if rule == "dependencies":
        return f"{name} lacks a field that another one asks for"
    if rule in _ASKED:
        return f"{name} {_ASKED[rule].format(_shown(said))}"
    return f"{name} is not let in by the schema"


def kind_of(value: Any) -> str:
    """What a value is, without the value."""
    if value is None:
        return "null"
    for kind, name in (
        (bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (dict, "object")
    ):  # fmt: skip
        if isinstance(value, kind):
            return _TYPES[name]
    return _TYPES["array"]


def _unknown(name: str, value: dict[str, Any], known: Mapping[str, Any]) -> str:
    words = []
    # Few, before anything is guessed about them: there may be as many as an input has room for.
    for one in islice((one for one in value if one not in known), _FIELDS):
        hint = did_you_mean(one, list(known))
        words.append(f'{name}: there is no field "{one[:100]}" in the schema'
                     + (f"; {hint}" if hint else ""))  # fmt: skip
    return "; ".join(words)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:99]}…"
