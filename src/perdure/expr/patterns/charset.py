"""Sets of characters: ranges of code points and Unicode categories, folded or negated."""

from __future__ import annotations

import unicodedata

import msgspec

Ranges = tuple[tuple[int, int], ...]

DIGIT: Ranges = ((48, 57),)
SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
# Letters that fold together though none is the other's upper or lower case.
_FOLDS = {"s": "\u017f", "\u017f": "sS", "k": "\u212a", "\u212a": "kK", "\u00e5": "\u212b",
          "\u212b": "\u00e5\u00c5"}  # fmt: skip


class CharSet(msgspec.Struct, frozen=True):
    """`categories` are (prefix of a Unicode category, negated). `fold` ignores case."""

    ranges: Ranges = ()
    categories: tuple[tuple[str, bool], ...] = ()
    negated: bool = False
    fold: bool = False

    def holds(self, char: str) -> bool:
        """Whether the set has the character."""
        if self._has(char):
            return not self.negated
        if self.fold and any(self._has(other) for other in _variants(char)):
            return not self.negated
        return self.negated

    def _has(self, char: str) -> bool:
        code = ord(char)
        if any(low <= code <= high for low, high in self.ranges):
            return True
        if not self.categories:
            return False
        own = unicodedata.category(char)
        return any(own.startswith(prefix) is not negated for prefix, negated in self.categories)


def complement(ranges: Ranges, *, fold: bool) -> Ranges:
    """All code points outside the ranges (of ASCII), and outside their other cases if `fold`."""
    if fold:
        inside = {chr(code) for low, high in ranges for code in range(low, high + 1)}
        others = {ord(other) for char in inside for other in _variants(char)}
        ranges = (*ranges, *((code, code) for code in others))
    out = []
    at = 0
    for low, high in sorted(ranges):
        if low > at:
            out.append((at, low - 1))
        at = max(at, high + 1)
    if at <= 0x10FFFF:
        out.append((at, 0x10FFFF))
    return tuple(out)


def _variants(char: str) -> set[str]:
    lower, upper = char.lower(), char.upper()
    found = {lower, upper, *_FOLDS.get(lower, ""), *_FOLDS.get(char, "")}
    return {other for other in found if len(other) == 1}
