"""Finds words that have no place in a committed file: one machine's paths, promises to nobody.

The patterns are put together from pieces so that this file does not find itself.
"""

from __future__ import annotations

import re

UNWANTED = {
    re.compile(r"(?<![\w.-])/(?:ho" + r"me|Us" + r"ers)/\w+"): "a path of somebody's machine",
    re.compile(r"(?<![\w.-])/ro" + r"ot(?:/|\b)"): "a path of somebody's machine",
    re.compile(r"(?<![\w.-])/wo" + r"rk/"): "a path of somebody's machine",
    re.compile(
        r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!\(#\d+\))"
    ): "a promise without an issue: (#12)",
}


def unwanted(path: str, text: str) -> list[str]:
    """Each unwanted word with its line."""
    return [
        f"{path}:{number}: {match.group()}: {why}"
        for pattern, why in UNWANTED.items()
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        for match in pattern.finditer(line)
    ]
