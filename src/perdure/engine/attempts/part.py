"""Part: what a task runs for a while, before something else (see Runner)."""

from __future__ import annotations

from typing import Any, Final, Protocol

#: What a part gives that has ended, instead of something to wait for.
OVER: Final = object()


class Part(Protocol):
    """What runs in a task. `send`, `throw` and `close` do as a coroutine's, but give OVER at the
    end."""

    def first(self) -> Any:
        """What it waits for, to begin with."""

    def send(self, value: Any, /) -> Any:
        """What it waited for is there: what it waits for next."""

    def throw(self, error: BaseException, /) -> Any:
        """Raise this where it waits: what it waits for next."""

    def close(self) -> None:
        """It does not go on."""

    def following(self) -> Part | None:
        """It is over: what is next. None: the task ends."""
