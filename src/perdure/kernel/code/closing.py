"""Closing: a workflow's code is let go of, explicitly.

Left to the garbage collector, a suspended coroutine's `finally` blocks would run at some moment
and ask for steps. Here the loop is dead first, so that whatever they ask for raises Evicted; then
every coroutine is closed, the youngest first, since those are what older ones wait for. One that
catches everything and will not end is kept for ever: the collector would run it on, outside of
any workflow.
"""

from __future__ import annotations

import sys
from asyncio import events
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from perdure.kernel.code.calls import Calls

#: How often a coroutine is told to go.
_TELLINGS: Final = 100
_STUBBORN: Final[list[Any]] = []


def close(calls: Calls) -> list[str]:
    """Let all coroutines of the run go; those that would not go, in words."""
    loop = calls.loop
    loop.alive = False
    stubborn: list[str] = []
    tasks = loop.tasks
    if not tasks:
        calls.forget()
        return stubborn
    before = events._get_running_loop()
    hooks = sys.get_asyncgen_hooks()
    events._set_running_loop(loop)
    sys.set_asyncgen_hooks(firstiter=_ignore, finalizer=_ignore)
    try:
        for task in reversed(tasks):
            # Its end is nobody's business any more: asyncio need not tell of it.
            task._log_destroy_pending = False
            coroutine = task.get_coro()
            if coroutine is not None:
                said = _close(coroutine)
                if said:
                    stubborn.append(f"{task.get_name()}: {said}")
    finally:
        sys.set_asyncgen_hooks(*hooks)
        events._set_running_loop(before)
    calls.forget()
    return stubborn


def _close(coroutine: Any) -> str | None:
    chain = [*_awaited(coroutine)]
    said = "it awaited something else instead of ending"
    for _ in range(_TELLINGS):
        try:
            coroutine.close()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            said = str(error)  # or an error of its own on the way out: the run goes on elsewhere
        going_on = [one for one in chain if one.cr_frame is not None]
        if not going_on:
            return None
        coroutine = going_on[0]
    _STUBBORN.extend(going_on)
    return said


def _awaited(coroutine: Any) -> Iterator[Any]:
    """The coroutine, what it awaits, and so on."""
    while hasattr(coroutine, "cr_frame"):
        yield coroutine
        coroutine = coroutine.cr_await


def _ignore(_: object) -> None:
    return None
