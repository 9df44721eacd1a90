"""Standard streams that are closed, full, or that nobody reads any more.

What is closed is opened onto nothing before a command begins: else the next file would get its
number, and what is printed would go into that. What cannot be written changes neither the work nor
the exit code of an error.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterable
from typing import IO, Any, Final, TextIO

_UNWRITTEN: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
_STANDARD: Final = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


def open_closed() -> None:
    """Open those of the three that are closed: nothing comes, and what is said goes nowhere."""
    for number, name, mode in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            # Left open as the interpreter leaves its own: others may write until its last moment.
            stream = os.fdopen(number, mode, encoding="utf-8", errors="replace", closefd=False)
            setattr(sys, name, stream)


def show_everything() -> None:
    """Characters that stdout or stderr cannot show (its encoding is not UTF-8, as in the C locale)
    are printed as Python writes them: a name with an accent fails no command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not shows_everything(stream):
            stream.reconfigure(errors="backslashreplace")


def shows_everything(stream: TextIO) -> bool:
    """Whether any character can be written there."""
    encoding = getattr(stream, "encoding", None)  # text in memory has none
    return not encoding or codecs.lookup(encoding).name.startswith("utf")


def silence(stream: IO[Any]) -> None:
    """Let what is still to be written there go nowhere, so that the interpreter's own flush at
    the end succeeds."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def is_of_output(error: OSError) -> bool:
    """Whether it says that what was printed cannot be written. Errors of files name them, and are
    told where those are used."""
    return error.filename is None and error.errno in _UNWRITTEN


class Lenient:
    """A stream for what steps print: one that cannot be written loses the text, and does not fail
    the step. Else it is that stream."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As the stream's, or nothing."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As the stream's, or nothing."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """As the stream's, or nothing."""
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
