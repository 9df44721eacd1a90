"""The current task, of which asyncio asks: it is another one while a workflow's loop runs.

Up to Python 3.13 each loop has its own. From 3.14 on a thread has one, whatever loop it is of: who
runs a loop within another one puts away what was current, and brings it back.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

#: From then on a thread has one current task, whatever loop it is of.
SWAPS: Final = sys.version_info >= (3, 14)

if sys.version_info >= (3, 14):

    def leave() -> Any:
        """No task is current from here on; the one that was."""
        return asyncio.tasks._swap_current_task(  # type: ignore[attr-defined]
            asyncio.get_running_loop(), None
        )

    def enter(outer: Any) -> None:
        """The one that was is current again."""
        asyncio.tasks._swap_current_task(  # type: ignore[attr-defined]
            asyncio.get_running_loop(), outer
        )
else:

    def leave() -> Any:
        """Nothing: the running loop has no task yet."""
        return None

    def enter(outer: Any) -> None:
        """Nothing: its own is current on the loop outside."""
        return


@contextmanager
def current(loop: Any, task: Any) -> Iterator[None]:
    """The task is the one that is run, as while it was."""
    if SWAPS:  # one current task a thread
        before = asyncio.tasks._swap_current_task(loop, task)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            asyncio.tasks._swap_current_task(loop, before)  # type: ignore[attr-defined]
        return
    asyncio.tasks._enter_task(loop, task)
    try:
        yield
    finally:
        asyncio.tasks._leave_task(loop, task)
