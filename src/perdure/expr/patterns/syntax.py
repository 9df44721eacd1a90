"""RE2's syntax to a tree.

A tree node is a tuple: ("set", CharSet), ("cat", nodes), ("alt", nodes), ("rep", node, least,
most or None), ("assert", name). Greed and groups do not matter for a yes or no and are dropped.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from perdure.expr.errors import Fault
from perdure.expr.patterns.charset import (
    DIGIT,
    POSIX,
    SPACE,
    WORD,
    CharSet,
    Ranges,
    complement,
)

Tree = tuple[Any, ...]
MAX_REPEAT = 1000
MAX_GROUPS = 100

_COUNT = re.compile(r"\{([0-9]{1,6})(?:(,)([0-9]{0,6}))?\}", re.ASCII)
_GROUP = re.compile(
    r"\(\?(?:P?<([A-Za-z_][A-Za-z0-9_]*)>|([imsU]*)(?:-([imsU]+))?([:)]))", re.ASCII
)
_HEX = re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\}")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_PROPERTY = re.compile(r"[pP](?:([A-Z])|\{(\^?)([A-Za-z_]+)\})")
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CLASSES = {"d": DIGIT, "s": SPACE, "w": WORD}
_CATEGORY = re.compile(r"(?:C[cfnos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?)\Z")


class SyntaxReader:
    """One use: `SyntaxReader(pattern).read()`."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.i = 0
        self.flags: frozenset[str] = frozenset()
        self.depth = 0

    def fail(self, why: str) -> NoReturn:
        raise Fault(f"the pattern cannot be used: {why}")

    def read(self) -> Tree:
        """The whole pattern, or a fault."""
        tree = self.alternatives()
        if self.i < len(self.text):
            self.fail("a `)` closes no group")
        return tree

    def alternatives(self) -> Tree:
        before = self.flags
        branches = [self.sequence()]
        while self.text.startswith("|", self.i):
            self.i += 1
            branches.append(self.sequence())
        self.flags = before
        return ("alt", branches) if len(branches) > 1 else branches[0]

    def sequence(self) -> Tree:
        items: list[Tree] = []
        repeatable = False
        while self.i < len(self.text) and self.text[self.i] not in "|)":
            counts = self.repetition()
            if counts is None:
                found = self.atom()
                items += found
                repeatable = bool(found)
                continue
            if not repeatable:
                self.fail("a repetition has nothing to repeat")
            items[-1] = ("rep", items[-1], *counts)
            repeatable = False
        return items[0] if len(items) == 1 else ("cat", items)

    def repetition(self) -> tuple[int, int | None] | None:
        char = self.text[self.i]
        counts: tuple[int, int | None]
        if char in "*+?":
            counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
            self.i += 1
        else:
            found = _COUNT.match(self.text, self.i)
            if found is None:
                return None
            least = int(found[1])
            most = least if found[2] is None else int(found[3]) if found[3] else None
            if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
                self.fail(f"a repetition count is above {MAX_REPEAT} or in the wrong order")
            self.i = found.end()
            counts = (least, most)
        if self.text.startswith("?", self.i):
            self.i += 1
        return counts

    def atom(self) -> list[Tree]:
        char = self.text[self.i]
        if char == "(":
            return self.group()
        self.i += 1
        if char == "[":
            return [("set", self.bracket())]
        if char == "\\":
            return self.escape()
        if char == ".":
            return [("set", CharSet(() if "s" in self.flags else ((10, 10),), negated=True))]
        if char == "^":
            return [("assert", "line-begin" if "m" in self.flags else "begin")]
        if char == "$":
            return [("assert", "line-end" if "m" in self.flags else "end")]
        return [self.literal(char)]

    def literal(self, char: str) -> Tree:
        return ("set", CharSet(((ord(char), ord(char)),), fold="i" in self.flags))

    def group(self) -> list[Tree]:
        found = _GROUP.match(self.text, self.i)
        before = self.flags
        if self.text.startswith("(?", self.i):
            if found is None:
                self.fail("`(?` begins nothing RE2 knows; lookaround is not supported")
            name, on, off, end = found.groups()
            self.i = found.end()
            if name is None:
                if end == ")" and not on and not off:
                    self.fail("`(?)` says nothing")
                self.flags = (self.flags | set(on)) - set(off or "")
            if end == ")":
                return []
        else:
            self.i += 1
        self.depth += 1
        if self.depth > MAX_GROUPS:
            self.fail(f"groups are nested deeper than {MAX_GROUPS} levels")
        tree = self.alternatives()
        if not self.text.startswith(")", self.i):
            self.fail("a group has no closing `)`")
        self.i += 1
        self.depth -= 1
        self.flags = before
        return [tree]

    def escape(self) -> list[Tree]:
        char = self.text[self.i : self.i + 1]
        asserts = {"A": "begin", "z": "end", "b": "word", "B": "no-word"}
        if char in asserts and char:
            self.i += 1
            return [("assert", asserts[char])]
        if char == "Q":
            end = self.text.find("\\E", self.i)
            quoted = self.text[self.i + 1 : end if end >= 0 else len(self.text)]
            self.i = end + 2 if end >= 0 else len(self.text)
            return [self.literal(each) for each in quoted]
        ranges, categories = self.class_escape()
        fold = "i" in self.flags
        if ranges is not None or categories:
            return [("set", CharSet(ranges or (), categories, fold=fold))]
        return [self.literal(chr(self.code()))]

    def class_escape(self) -> tuple[Ranges | None, tuple[tuple[str, bool], ...]]:
        """A class such as `d` or `pL` at the character after the backslash; else nothing."""
        char = self.text[self.i : self.i + 1]
        if char and char in "dswDSW":
            self.i += 1
            ranges = _CLASSES[char.lower()]
            fold = "i" in self.flags
            return (ranges if char.islower() else complement(ranges, fold=fold)), ()
        if char not in {"p", "P"}:
            return None, ()
        found = _PROPERTY.match(self.text, self.i)
        name = (found[1] or found[3]) if found else ""
        if found is None or (name != "Any" and not _CATEGORY.match(name)):
            self.fail("`\\p` takes a Unicode category such as \\p{Lu}; scripts are not known")
        self.i = found.end()
        negated = (char == "P") != bool(found[2])
        return None, (("" if name == "Any" else name, negated),)

    def code(self) -> int:
        """The character of an escape, at the one after the backslash."""
        char = self.text[self.i : self.i + 1]
        self.i += 1
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "x":
            found = _HEX.match(self.text, self.i)
            if found is None or int(found[1] or found[2], 16) > 0x10FFFF:
                self.fail("`\\x` takes two hexadecimal digits, or a code point in braces")
            self.i = found.end()
            return int(found[1] or found[2], 16)
        octal = _OCTAL.match(self.text, self.i - 1)
        if octal is not None:
            self.i = octal.end()
            return int(octal[0], 8)
        if char and char.isascii() and not char.isalnum():
            return ord(char)
        return self.fail(f"`\\{char}` is no escape of RE2; back-references are not supported")

    def bracket(self) -> CharSet:
        negated = self.text.startswith("^", self.i)
        self.i += negated
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[str, bool]] = []
        first = True
        while first or not self.text.startswith("]", self.i):
            first = False
            if self.i >= len(self.text):
                self.fail("a `[` has no closing `]`")
            if self.text.startswith("[:", self.i) and ":]" in self.text[self.i + 2 :]:
                ranges += self.posix()
                continue
            if self.text[self.i] == "\\":
                self.i += 1
                more, kinds = self.class_escape()
                if more is not None or kinds:
                    ranges += more or ()
                    categories += kinds
                    continue
                self.i -= 1
            ranges.append(self.span())
        self.i += 1
        return CharSet(tuple(ranges), tuple(categories), negated, "i" in self.flags)

    def posix(self) -> Ranges:
        end = self.text.index(":]", self.i + 2)
        name = self.text[self.i + 2 : end]
        self.i = end + 2
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            self.fail("a `[:name:]` class is not known")
        return complement(ranges, fold="i" in self.flags) if name[:1] == "^" else ranges

    def span(self) -> tuple[int, int]:
        low = self.bracket_char()
        if not self.text.startswith("-", self.i) or self.text.startswith("-]", self.i):
            return low, low
        self.i += 1
        high = self.bracket_char()
        if high < low:
            self.fail("a range of characters is in the wrong order")
        return low, high

    def bracket_char(self) -> int:
        char = self.text[self.i : self.i + 1]
        if not char:
            self.fail("a `[` has no closing `]`")
        self.i += 1
        return self.code() if char == "\\" else ord(char)
