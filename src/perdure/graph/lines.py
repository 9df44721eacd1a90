"""Finds where in the text of a document each JSON pointer stands, for messages about it.

JSON is read once more, and only when there is something to tell; it has been read before, and is
trusted to be JSON. YAML is looked up in its tree. A finding about a place inside a string gets
that place, as long as the string is written in one line; else it gets the string's.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from json import JSONDecoder
from typing import Final

import msgspec

from perdure.graph.read import pointer
from perdure.graph.tree import Node
from perdure.model.graph_rules import Finding

_SPACE: Final = re.compile(r"[ \t\n\r]*")
# Numbers as text: nothing is computed, and no number is too long.
_DECODER: Final = JSONDecoder(parse_int=str, parse_float=str)
#: By the quote that begins a string: what stands for one character each.
_UNITS: Final = {
    '"': re.compile(
        r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\x..|\\u.{4}|\\U.{8}|\\.|[^\\]", re.DOTALL
    ),
    "'": re.compile(r"''|[^']"),
    "": re.compile(r"."),
}


class SourceText(msgspec.Struct):
    """The text of a document; `root`: its tree, if it is YAML."""

    text: str
    root: Node | None = None


class Place(msgspec.Struct, frozen=True):
    """Offsets: of the key (of the item, in a list), of the value, and of the end of a scalar;
    `end` is 0 for lists and objects."""

    key: int
    value: int
    end: int = 0


def with_lines(findings: Sequence[Finding], source: SourceText | None) -> list[Finding]:
    """The findings with line and column of their places; as they are when there was no text."""
    if source is None or not findings:
        return list(findings)
    wanted = {finding.pointer for finding in findings}
    if source.root is None:
        places = _json_places(source.text, wanted)
    else:
        places = _yaml_places(source.root, wanted)
    ends = [match.start() for match in re.finditer("\n", source.text)]

    def placed(finding: Finding) -> Finding:
        place = places.get(finding.pointer)
        if place is None or finding.line:
            return finding
        offset = place.value if place.end and not finding.on_key else place.key
        within = finding.within
        if within is not None and place.end:
            exact = _inside(source.text, place, *within)
            offset, within = (offset, within) if exact is None else (exact, None)
        row = bisect_left(ends, offset)
        column = offset - (ends[row - 1] if row else -1)
        return msgspec.structs.replace(finding, line=row + 1, column=column, within=within)

    return [placed(finding) for finding in findings]


def _inside(text: str, place: Place, line: int, column: int) -> int | None:
    """The offset of a character of a string; None unless it is written in one line."""
    raw = text[place.value : place.end]
    if line != 1 or "\n" in raw:
        return None
    quote = raw[:1] if raw[:1] in ("'", '"') else ""
    if quote:
        raw = raw[1:-1]
    at = 0
    for _ in range(column - 1):
        unit = _UNITS[quote].match(raw, at)
        if unit is None:
            return None
        at = unit.end()
    return place.value + len(quote) + at


def _yaml_places(root: Node, wanted: Iterable[str]) -> dict[str, Place]:
    # By mapping: where each key stands in it. One may have as many keys as there are findings.
    keys: dict[int, dict[str, int]] = {}
    found = {one: _yaml_place(root, one, keys) for one in wanted}
    return {one: place for one, place in found.items() if place is not None}


def _yaml_place(root: Node, wanted: str, keys: dict[int, dict[str, int]]) -> Place | None:
    node, key = root, root.start
    for step in wanted.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if node.kind == "list" and name.isdigit() and int(name) < len(node.items):
            node = node.items[int(name)]
            key = node.start
        elif node.kind == "mapping":
            if id(node) not in keys:
                # The last of a repeated key: its value is the one that counts.
                keys[id(node)] = {one.text: i for i, one in enumerate(node.keys)}
            at = keys[id(node)].get(name)
            if at is None:
                return None
            key, node = node.keys[at].start, node.items[at]
        else:
            return None
    return Place(
        key, node.start, node.end if node.kind == "scalar" and node.end > node.start else 0
    )


def _json_places(text: str, wanted: Iterable[str]) -> dict[str, Place]:
    try:
        return _Offsets(text, wanted).found
    except RecursionError:  # nested so deeply that only a shallower stack could read it
        return {}


class _Offsets:
    """Pointer → place. The last of a repeated key: its value is the one that counts."""

    def __init__(self, text: str, wanted: Iterable[str]) -> None:
        self.found: dict[str, Place] = {}
        self._text = text
        #: The values to look into: all that lie on the way to something wanted.
        self._ways: set[str] = set()
        for one in wanted:
            way = one
            while way and (way := way.rpartition("/")[0]) not in self._ways:
                self._ways.add(way)
        start = self._after(0)
        self._value(start, "", start)

    def _after(self, at: int) -> int:
        """The offset of what follows the white space."""
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _value(self, at: int, name: str, key_at: int) -> int:
        """Reads the value at an offset; returns the offset after it."""
        start, opening = at, self._text[at]
        if opening not in "{[":
            _, end = _DECODER.raw_decode(self._text, at)
            self.found[name] = Place(key_at, start, end)
            return end
        self.found[name] = Place(key_at, start)
        if name not in self._ways:
            return _DECODER.raw_decode(self._text, at)[1]
        closing = "}" if opening == "{" else "]"
        at = self._after(at + 1)
        index = 0
        while self._text[at] != closing:
            below_at, key = at, str(index)
            if opening == "{":
                key, at = _DECODER.raw_decode(self._text, at)
                at = self._after(self._after(at) + 1)  # past the colon
            at = self._after(self._value(at, pointer(name, key), below_at))
            if self._text[at] == ",":
                at = self._after(at + 1)
            index += 1
        return at + 1
