"""Observers: whoever sees what runs do. They are called shielded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from perdure.engine.runs.live_run import LiveRun
    from perdure.kernel.onward import Decided
    from perdure.kernel.run import Run


class Observer(Protocol):
    """Sees what became durable, and attempts as they start. Its errors change nothing."""

    def entered(self, live: LiveRun, run: Run) -> None:
        """A run came into memory, as it stands."""

    def recorded(self, live: LiveRun, transition: Decided) -> None:
        """A transition became durable."""
