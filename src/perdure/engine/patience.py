"""Patience: whether a row that could be written now waits a moment, to share a commit with others.

A store that answers while it is asked keeps the loop for as long as a commit takes, so no company
gathers meanwhile: rows that come one by one would each pay for a commit. Where attempts are under
way that may end any moment, a row waits about as long as a few commits take. It is tried out and
given up for a while where nobody comes.
"""

from __future__ import annotations

from typing import Final

#: How many commits' time a row waits at most, and seconds.
_COMMITS: Final = 4
LONGEST: Final = 0.001
#: A commit quicker than this is not worth waiting for; seconds.
_WORTH: Final = 0.00005
#: How many rows more a wait has to bring, on average, and for how many commits it is not tried
#: again when it does not.
_GAIN: Final = 0.5
_REST: Final = 64
_MEMORY: Final = 8


class Patience:
    """Told of every commit that was answered at once."""

    __slots__ = ("_gained", "_rest", "_took")

    def __init__(self) -> None:
        self._took = 0.0
        #: How many rows came during a wait, on average.
        self._gained = 2 * _GAIN
        self._rest = 0

    def window(self) -> float:
        """How long a row is to wait for others, in seconds."""
        if self._took < _WORTH:
            return 0.0
        if self._rest:
            self._rest -= 1
            return 0.0
        return min(_COMMITS * self._took, LONGEST)

    def wrote(self, seconds: float) -> None:
        """A commit took so long, and the loop with it."""
        self._took += (min(seconds, LONGEST) - self._took) / _MEMORY

    def waited(self, gained: int) -> None:
        """A row waited, and so many others came."""
        self._gained += (min(gained, _MEMORY) - self._gained) / _MEMORY
        if self._gained < _GAIN:
            self._gained, self._rest = 2 * _GAIN, _REST
