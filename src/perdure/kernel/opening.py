"""Opening: the first record of every run, and the snapshot that it alone makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from perdure.kernel.actions import OpenRun
from perdure.kernel.fold import open_run
from perdure.kernel.run import Run

if TYPE_CHECKING:
    from perdure.kernel.events import RunStarted


class Described(Protocol):
    """What is run: the plan of a graph, or a workflow's program."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def hash(self) -> str: ...


def opening(what: Described, event: RunStarted) -> OpenRun:
    """The record of a start."""
    return OpenRun(
        what.name, event.id, what.version, what.hash, event.python, event.input, None,
        event.config, None, event.metadata, event.deadline, event.trace,
    )  # fmt: skip


def opened_run(opened: OpenRun, now: int) -> Run:
    """A new run's snapshot, of which nothing else is decided yet."""
    run = Run(at=now)
    open_run(run, opened)
    return run
