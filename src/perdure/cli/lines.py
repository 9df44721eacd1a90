"""Progress as plain lines on stderr, one for each change: for logs, pipes, and without rich."""

from __future__ import annotations

import contextlib
import sys
from datetime import UTC, datetime
from typing import Any, Self

from perdure.cli.node_view import Change
from perdure.cli.output import clock
from perdure.cli.say import visible
from perdure.cli.streams import Lenient


class Lines:
    """`12:00:01  charge  completed (attempt 1, 0.31 s)`. What steps print goes to stderr too:
    stdout is the result's alone. One that nobody reads any more fails no step."""

    def __init__(self, width: int = 0) -> None:
        self._width = width
        self._redirected = contextlib.ExitStack()

    def changed(self, change: Change) -> None:
        """One line."""
        self._say(change.time, f"{change.node.ljust(self._width)}  {change.text}")

    def note(self, text: str) -> None:
        """One line."""
        self._say(datetime.now(UTC), text)

    def _say(self, time: datetime, text: str) -> None:
        # Nobody may be there to read it (a full disk, a closed pipe): the run goes on.
        with contextlib.suppress(OSError, ValueError):
            print(f"{clock(time)}  {visible(text)}", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        stream: Any = Lenient(sys.stderr)
        self._redirected.enter_context(contextlib.redirect_stdout(stream))
        self._redirected.enter_context(contextlib.redirect_stderr(stream))
        return self

    def __exit__(self, *exc: object) -> None:
        self._redirected.close()
