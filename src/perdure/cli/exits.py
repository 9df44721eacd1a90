"""Exit codes, and how an exception becomes one message with one of them.

A caller can tell by the code who must act: the run's own failure, the person at the keyboard,
or the store. What nobody expected says how to see its traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import IO, Any, Final

import click

from perdure.cli.say import json_text, say
from perdure.cli.streams import silence

OK: Final = 0
RUN_FAILED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
TIMED_OUT: Final = 4
STORE: Final = 5
#: A fault of perdure itself, or of the machine (EX_SOFTWARE of sysexits.h).
UNEXPECTED: Final = 70
#: The output cannot be written (EX_IOERR).
UNWRITTEN: Final = 74
INTERRUPTED: Final = 130
#: The output has no reader any more (128 + SIGPIPE, as of programs that this signal ends).
UNREAD: Final = 141
TERMINATED: Final = 143

DEBUG: Final = "PERDURE_DEBUG"
#: The key of a command's context under which `--json` is remembered.
JSON: Final = "perdure.json"


class Trouble(click.ClickException):
    """Ends a command with a message on stderr and an exit code. With `--json` stdout gets
    {"error": {"code": …, "message": …}}."""

    def __init__(self, message: str, exit_code: int, code: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click's own errors set the class's
        self.code = code
        ctx = click.get_current_context(silent=True)
        self.as_json = bool(ctx and ctx.meta.get(JSON))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message."""
        if debugging() and self.__cause__ is not None:
            traceback.print_exception(self.__cause__, file=sys.stderr)
        stream = file or sys.stderr
        _say(f"perdure: {self.message}", stream)
        if self.as_json:
            error = {"code": self.code, "message": self.message}
            _say(json_text({"error": error}), sys.stdout)


def _say(text: str, stream: IO[Any]) -> None:
    try:
        say(text, file=stream)
    except OSError:  # what cannot be told changes no exit code
        silence(stream)


def usage(message: str) -> Trouble:
    """What was typed, or a file that was named, is wrong."""
    return Trouble(message, USAGE, "usage")


def debugging() -> bool:
    """Whether PERDURE_DEBUG asks for tracebacks."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def trouble_of(error: Exception) -> Trouble:
    """The message and exit code of any exception that left a command."""
    from perdure.model import errors

    if isinstance(error, errors.StoreError):
        return Trouble(str(error), STORE, "store")
    if isinstance(error, errors.NotFound):
        hint = "perdure list shows the runs that are there"
        return Trouble(f"{error}; {hint}", NOT_FOUND, "not-found")
    if isinstance(error, errors.DefinitionError):
        return Trouble(str(error), USAGE, "definition")
    if isinstance(error, errors.PerdureError):
        return usage(str(error))
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = "" if debugging() else f"\nSet {DEBUG}=1 to see where it came from."
    return Trouble(f"unexpected error: {text}{hint}", UNEXPECTED, "unexpected")
