"""Closing: a workflow's code is let go of, explicitly.

Left to the garbage collector, a suspended coroutine's `finally` blocks would run at some moment
and ask for steps. Here the loop is dead first, and whatever they ask for never comes. Then every
coroutine is closed, the youngest first, since those are what older ones wait for, and once more at
each thing that it awaits on its way out. One that catches everything and will not end is kept for
ever, the end of the process included: whoever let go of it would run it on, outside of any
workflow, and might never come back.
"""

from __future__ import annotations

import gc
import sys
from asyncio import events
from collections.abc import Iterator
from inspect import CORO_CREATED, getcoroutinestate
from types import CellType, CoroutineType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from perdure.kernel.code.current_task import current

if TYPE_CHECKING:
    from perdure.kernel.code.calls import Calls

#: How often a coroutine is told to go, and goes on.
_TELLINGS: Final = 100
#: What calls that were made and not awaited are looked for in, and how deep.
_HOLDERS: Final[frozenset[type]] = frozenset({list, tuple, set, dict, CellType})
_DEPTH: Final = 3


class _Kept(msgspec.Struct, gc=False):
    """Holds a coroutine that will not end, and itself: nothing ever frees it, not even the end of
    the interpreter, which empties every module."""

    coroutine: Any
    itself: Any = None


def close(calls: Calls) -> list[str]:
    """Let all coroutines of the run go; those that would not go, in words."""
    loop = calls.loop
    loop.alive = False
    stubborn: list[str] = []
    tasks = loop.tasks
    if not tasks:
        calls.forget()
        loop.release()
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
                with current(loop, task):  # `asyncio.timeout` asks which task it is used in
                    said = _close(coroutine)
                if said:
                    stubborn.append(f"{task.get_name()}: {said}")
    finally:
        sys.set_asyncgen_hooks(*hooks)
        events._set_running_loop(before)
    calls.forget()
    if not stubborn:
        loop.release()
    return stubborn


def _close(root: Any) -> str | None:
    """Close a task's coroutine and all that it awaits, the innermost first: closed from outside,
    one that awaits something in its `finally` would look like a failure to those above it."""
    told, said = 0, "it awaited something else instead of ending"
    while going_on := [one for one in _awaited(root) if one.cr_frame is not None]:
        if told == _TELLINGS:
            for one in going_on:
                _keep(one)
            return said
        last = going_on[-1]
        _forget_unbegun(last)
        try:
            last.close()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            said = str(error)  # or an error of its own on the way out: the run goes on elsewhere
        told += last.cr_frame is not None
    return None


def _keep(coroutine: Any) -> None:
    kept = _Kept(coroutine)
    kept.itself = kept


def _awaited(coroutine: Any) -> Iterator[Any]:
    """The coroutine, what it awaits, and so on."""
    while hasattr(coroutine, "cr_frame"):
        yield coroutine
        coroutine = coroutine.cr_await


def _forget_unbegun(coroutine: Any) -> None:
    """Calls that it has made and not awaited yet, such as a list of them that is about to be
    gathered: Python would warn of them as of a mistake."""
    holders: list[Any] = [coroutine]
    for _ in range(_DEPTH):
        held = gc.get_referents(*holders)
        for one in held:
            if isinstance(one, CoroutineType) and getcoroutinestate(one) == CORO_CREATED:
                one.close()
        holders = [one for one in held if type(one) in _HOLDERS]


def _ignore(_: object) -> None:
    return None
