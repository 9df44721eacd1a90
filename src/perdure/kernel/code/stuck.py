"""What stops a workflow's code for good: seen by the engine, never by the code itself.

Both derive from BaseException: an `except Exception` in a workflow must not swallow them, and
one that catches everything gets nothing more: the loop it runs on is dead.
"""

from __future__ import annotations

from typing import Any, Final

#: Of a workflow that waits with no call open: no record can make its code go on.
ENDLESS: Final = (
    "its code waits for what nothing can bring: for a future, a lock, an event or a queue of its "
    "own that no call, timer or signal will ever release"
)


class Evicted(BaseException):
    """This copy of the workflow's code has been let go of: nothing it asks for has any effect."""

    def __init__(self) -> None:
        super().__init__("this run has been let go of: its code can do nothing more here")


class ContinueAsNew(BaseException):
    """The workflow's function ends, and begins anew with this input (Raw, or None)."""

    def __init__(self, input: Any) -> None:
        super().__init__("continue_as_new")
        self.input = input


class Stuck(Exception):
    """The run cannot go on with this code: it stalls with this reason until somebody acts.

    Nothing of the decision is recorded. `cause`: a public error for whoever looks closer.
    """

    def __init__(self, reason: str, cause: Exception | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


def endless(where: str) -> str:
    """The workflow waits for ever. `where`: as of `hot_loop`."""
    return (
        f"{ENDLESS} (it stands{where}). It stays so until its max_duration is over, if it has "
        "one: mend the code, and cancel the run"
    )


def exits(code: object, where: str) -> str:
    """The workflow's code ends the process. `where`: as of `hot_loop`."""
    return (
        f"its code ends the process{where}: SystemExit({code!r}). A workflow ends by returning or "
        "by raising an Exception; nothing of this turn was recorded"
    )


class Interrupted(Stuck):
    """The process ends in the middle of a turn: this copy of the code is of no use any more, the
    run goes on elsewhere."""


def hot_loop(where: str) -> Stuck:
    """The workflow never waits. `where`: ` at line 12 of orders.py`, or nothing."""
    return Stuck(
        f"hot loop{where}: the workflow runs on and on without waiting for anything. Nothing of "
        "this turn was recorded: mend the code, and the run goes on"
    )
