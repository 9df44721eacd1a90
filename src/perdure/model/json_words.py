"""What a JSON value is, in words for people: they write JSON, and not Python."""

from __future__ import annotations

from typing import Any, Final

_WORDS: Final[dict[type, str]] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def json_kind(value: Any) -> str:
    """`an object`, `a string`, `null` and so on; for what is no JSON the name of its type."""
    return _WORDS.get(type(value), f"a {type(value).__name__}")
