"""Finds the line of the text at which each JSON pointer stands, for messages about a document.

Reads the text once more, and only when there is something to tell. It trusts the text to be JSON:
it has been read before.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from json import JSONDecoder
from typing import Final

import msgspec

from perdure.graph.read import pointer
from perdure.model.graph_rules import Finding

_SPACE: Final = re.compile(r"[ \t\n\r]*")
# Numbers as text: nothing is computed, and no number is too long.
_DECODER: Final = JSONDecoder(parse_int=str, parse_float=str)


def with_lines(findings: Sequence[Finding], text: str | None) -> list[Finding]:
    """The findings with the lines of their places; as they are when there was no text."""
    if text is None or not findings:
        return list(findings)
    offsets = _Offsets(text, {finding.pointer for finding in findings}).found
    ends = [match.start() for match in re.finditer("\n", text)]

    def placed(finding: Finding) -> Finding:
        offset = offsets.get(finding.pointer)
        if offset is None:
            return finding
        return msgspec.structs.replace(finding, line=bisect_left(ends, offset) + 1)

    return [placed(finding) for finding in findings]


class _Offsets:
    """Pointer → offset of its key, or of the item of a list. The first of a repeated key."""

    def __init__(self, text: str, wanted: Iterable[str]) -> None:
        self.found: dict[str, int] = {}
        self._text = text
        #: The values to look into: all that lie on the way to something wanted.
        self._ways: set[str] = set()
        for one in wanted:
            way = one
            while way and (way := way.rpartition("/")[0]) not in self._ways:
                self._ways.add(way)
        self._value(self._after(0), "")

    def _after(self, at: int) -> int:
        """The offset of what follows the white space."""
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _value(self, at: int, name: str) -> int:
        """Reads the value at an offset; returns the offset after it."""
        opening = self._text[at]
        if name not in self._ways or opening not in "{[":
            _, end = _DECODER.raw_decode(self._text, at)
            return end
        closing = "}" if opening == "{" else "]"
        at = self._after(at + 1)
        index = 0
        while self._text[at] != closing:
            start, key = at, str(index)
            if opening == "{":
                key, at = _DECODER.raw_decode(self._text, at)
                at = self._after(self._after(at) + 1)  # past the colon
            below = pointer(name, key)
            self.found.setdefault(below, start)
            at = self._after(self._value(at, below))
            if self._text[at] == ",":
                at = self._after(at + 1)
            index += 1
        return at + 1
