"""What somebody may have meant by a word that is not known.

Each guess compares with every known word. Within `bounded`, a document with ten thousand mistakes
gets its first few hundred guesses and is told of all of them in good time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Final

#: Of more words none is guessed.
MOST_KNOWN: Final = 1_000
#: Words that may be compared within `bounded`.
COMPARISONS: Final = 30_000

_left: Final[ContextVar[list[int] | None]] = ContextVar("perdure_guesses", default=None)


@contextmanager
def bounded() -> Iterator[None]:
    """Within this only so many words are compared; around another one, that one's count too."""
    before = _left.set([COMPARISONS] if _left.get() is None else _left.get())
    try:
        yield
    finally:
        _left.reset(before)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """`did you mean "url"?` for the nearest known word, else the list of them, if short."""
    left = _left.get()
    few = len(word) <= 100 and len(known) <= MOST_KNOWN and (left is None or left[0] > 0)
    if few and left is not None:
        left[0] -= len(known)
    near = get_close_matches(word, known, 1) if few else []
    if near:
        return f'did you mean "{near[0]}"?'
    return f"use one of: {', '.join(known)}" if 0 < len(known) <= 20 else ""
