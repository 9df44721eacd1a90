"""Observers: whoever sees what runs do. What they raise is logged and changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from perdure.engine.live_run import LiveRun
    from perdure.kernel.onward import Decided
    from perdure.kernel.run import Run

_log = logging.getLogger("perdure.engine")


class Observer(Protocol):
    """Sees what became durable, and attempts as they start. Its errors change nothing."""

    def entered(self, live: LiveRun, run: Run) -> None:
        """A run came into memory, as it stands."""

    def recorded(self, live: LiveRun, transition: Decided) -> None:
        """A transition became durable."""


def shielded(call: Callable[..., None], *args: object) -> None:
    """Call an observer."""
    try:
        call(*args)
    except Exception:
        _log.exception("an observer failed")
