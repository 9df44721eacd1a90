"""Lettering: how wide text will be, roughly, and how it is cut to fit.

No font is known here, so widths are those of a wide one (DejaVu Sans): what is measured as fitting
fits in every usual font.
"""

from __future__ import annotations

import unicodedata
from typing import Final

#: Widths in thousandths of the font's size.
_WIDTHS: Final[dict[str, int]] = {
    **dict.fromkeys("ijl'|.,:;! I", 330),
    **dict.fromkeys('frt()[]{}"-/\\', 420),
    **dict.fromkeys("mMwW@%", 960),
    **dict.fromkeys("<>+=#~&_", 820),
}
_SMALL, _CAPITAL, _DIGIT, _OTHER, _WIDE = 620, 740, 640, 700, 1050
BOLD: Final = 1.12


def width(text: str, size: float, *, bold: bool = False) -> float:
    """How wide the text is at most, in pixels."""
    return sum(_width(letter) for letter in text) * size / 1000 * (BOLD if bold else 1)


def _width(letter: str) -> int:
    known = _WIDTHS.get(letter)
    if known is not None:
        return known
    if letter.isascii():
        return _SMALL if letter.islower() else _CAPITAL if letter.isupper() else _DIGIT
    if unicodedata.combining(letter):
        return 0
    wide = unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF
    return _WIDE if wide else _OTHER


def fitting(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """The text on one line, cut with … where it is wider than `room` pixels."""
    line = " ".join(text.split())
    if width(line, size, bold=bold) <= room:
        return line
    room -= width("…", size, bold=bold)
    kept = 0.0
    for index, letter in enumerate(line):
        kept += width(letter, size, bold=bold)
        if kept > room:
            return line[:index].rstrip() + "…"
    return line
