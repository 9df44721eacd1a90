"""What a schema of inputs may ask for: an end to its references, and a check of bounded size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

#: What the check is made of grows with this, and a schema that counts more is refused.
MAX_SIZE: Final = 1_000_000


def endless(same: Mapping[str, set[str]]) -> str | None:
    """A part that refers to itself, the value being the same; None when every circle of
    references goes on to what a value holds. `same`: part -> parts that judge the same value."""
    done: set[str] = set()
    for root in same:
        path: dict[str, list[str]] = {} if root in done else {root: sorted(same[root])}
        while path:
            name, left = next(reversed(path.items()))
            if not left:
                done.add(name)
                del path[name]
            elif (following := left.pop()) in path:
                return following
            elif following not in done:
                path[following] = sorted(same[following])
    return None


def size_of(parts: Mapping[str, Any]) -> int:
    """About how many characters of code are made of these parts: each rule repeats its part, and
    those that it refers to."""
    sizes = {name: len(msgspec.json.encode(part)) for name, part in parts.items()}
    total = 0
    for name, part in parts.items():
        rules = 4 + len(part if isinstance(part, dict) else ())
        total += rules * (sizes[name] + sum(sizes[ref] for ref in _references(part)))
    return total


def _references(part: Any) -> list[str]:
    if isinstance(part, list):
        return [ref for item in part for ref in _references(item)]
    if not isinstance(part, dict):
        return []
    if isinstance(part.get("$ref"), str):
        return [part["$ref"].rpartition("/")[2]]
    return [ref for key, item in part.items() if key not in ("enum", "const")
            for ref in _references(item)]  # fmt: skip
