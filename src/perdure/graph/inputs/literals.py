"""Values that a schema asks for, written as rules.

A value may look like a reference ({"$ref": ...}), and the library follows those also where they
are plain values. Written as rules about its members, it is only looked at.
"""

from __future__ import annotations

from typing import Any


def looks_referring(value: Any) -> bool:
    """Whether there is an object in the value that could be taken for a reference or its end."""
    if isinstance(value, list):
        return any(looks_referring(item) for item in value)
    if not isinstance(value, dict):
        return False
    return not value.keys().isdisjoint(("$ref", "$id", "id")) or any(
        looks_referring(item) for item in value.values()
    )


def literal(value: Any) -> dict[str, Any]:
    """The schema of this value and no other."""
    if isinstance(value, dict):
        members = {key: literal(item) for key, item in value.items()}
        return {
            "type": "object",
            "required": list(value),
            "properties": members,
            "additionalProperties": False,
        }
    if isinstance(value, list):
        items = [literal(item) for item in value]
        return {"type": "array", "minItems": len(value), "items": items, "additionalItems": False}
    return {"const": value}
