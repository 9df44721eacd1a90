"""Untold: errors out of users' code that do not tell what it did.

A step that raises says that it failed, and is taken at its word: what it did is its own to take
back. But some errors are nobody's word about the effect. Somebody stopped waiting, or stopped the
code in the middle; what was asked of the world outside may have happened.
"""

from __future__ import annotations

import asyncio
from typing import Final

from perdure.engine.handlers.port import Unrecordable
from perdure.model.errors import Canceled, Failure

#: `TimeoutError` is what asyncio, sockets and perdure's own TimedOut raise.
_NO_ANSWER: Final = (TimeoutError, Canceled, asyncio.CancelledError, Unrecordable)
#: What a coroutine that nobody closed raised as if somebody had (see attempts.stepping).
_CLOSED: Final = GeneratorExit.__name__


def tells_nothing(error: BaseException) -> bool:
    """Whether nobody knows what code did that raised this: no answer came in time, it was
    canceled, what it returned is lost, or it is not an Exception at all, and came from below."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(tells_nothing, error.exceptions))
    if isinstance(error, Failure) and error.kind == _CLOSED:
        return True
    return isinstance(error, _NO_ANSWER) or not isinstance(error, Exception)
