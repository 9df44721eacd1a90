"""Where a workflow's code stands: the line that a person wrote, for messages."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Final

#: Frames of the machinery that carries a workflow's code.
_MACHINERY: Final = ("/perdure/", "/asyncio/")


def line_of(task: asyncio.Task[Any] | None) -> str:
    """Where a task waits, as ` at line 12 of orders.py`; nothing where that is unknown."""
    found: FrameType | None = None
    coroutine: Any = None if task is None else task.get_coro()
    while isinstance(coroutine, Coroutine):
        frame: FrameType | None = getattr(coroutine, "cr_frame", None)
        if frame is not None and _is_users(frame):
            found = frame
        coroutine = getattr(coroutine, "cr_await", None)
    return _said(found)


def line_here() -> str:
    """Where the code that is running now stands."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_users(frame):
        frame = frame.f_back
    return _said(frame)


def line_in(error: BaseException) -> str:
    """Where an exception was raised: the innermost line of users' code."""
    found: FrameType | None = None
    line, at = 0, error.__traceback__
    while at is not None:
        if _is_users(at.tb_frame):
            found, line = at.tb_frame, at.tb_lineno
        at = at.tb_next
    return _said(found, line)


def _is_users(frame: FrameType) -> bool:
    return not any(part in frame.f_code.co_filename for part in _MACHINERY)


def _said(frame: FrameType | None, line: int = 0) -> str:
    if frame is None:
        return ""
    return f" at line {line or frame.f_lineno} of {frame.f_code.co_filename.rpartition('/')[2]}"
