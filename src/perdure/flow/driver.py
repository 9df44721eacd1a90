"""Driver: what an engine underneath perdure has to offer to clients and workers, so that they need
not know which one it is. What it offers to the code of a workflow stands in runtime.py.

Values are bytes, JSON text: types are the business of the doors. What an engine cannot do it
refuses with Unsupported before anything has happened; it never does something near it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import msgspec

from perdure.model.protocols import fits

if TYPE_CHECKING:
    from perdure.flow.codec import Codec
    from perdure.flow.registry import Registry
    from perdure.model.definition import Definition
    from perdure.model.driving import Outcome, StartRequest
    from perdure.model.status import RunStatus

D = TypeVar("D")


@runtime_checkable
class Driver(Protocol):
    """How a client reaches runs. Safe to use from many tasks of one event loop. Errors are those
    of perdure.errors and reach the caller as they are; StoreError where it is not known whether
    something happened."""

    async def open(self) -> None:
        """Connect; again, it does nothing. Every other method connects by itself."""

    async def close(self) -> None:
        """Finish what is under way and disconnect, for good."""

    async def definition(self, name: str, /) -> Definition[Any, Any]:
        """What runs started by this name run. Raises NotFound."""

    async def start(self, request: StartRequest, /) -> bool:
        """Start a run, durably; False when one of this definition and id is there, ended or not.
        Of several at once exactly one is True. Raises InvalidRequest, Unsupported."""

    async def result(self, workflow: str, id: str, /) -> Outcome:
        """Wait for the end. Waiting never owns the run: being cancelled changes nothing of it.
        Raises NotFound."""

    async def status(self, workflow: str, id: str, /) -> RunStatus:
        """How the run stands. Raises NotFound."""

    async def signal(
        self, workflow: str, id: str, name: str, value: bytes, key: str | None, /
    ) -> None:
        """Send a value to a mailbox of the run, durably; one sent before anybody waits is kept. A
        second one with the same key changes nothing. Raises NotFound, also for an ended run."""

    async def cancel(self, workflow: str, id: str, reason: str, /) -> None:
        """Ask the run to end as canceled; nothing happens to an ended one. Raises NotFound."""


class Duties(msgspec.Struct, frozen=True):
    """What an Engine asks of a driver that works for it. `registry`: the definitions and steps;
    `resources`: what steps ask for by type; `threads`: how many `def` steps run at once, None = as
    the driver likes; `codec`: how values of workflows are written, None = JSON as it is;
    `telemetry`: who observes attempts."""

    registry: Registry
    resources: tuple[object, ...] = ()
    threads: int | None = None
    codec: Codec | None = None
    name: str = ""
    telemetry: Any = None


@runtime_checkable
class Host(Driver, Protocol):
    """A driver whose engine can execute in this process: what `Engine(driver, […])` needs."""

    async def work(self, duties: Duties, /) -> None:
        """Begin to execute runs of these definitions, those that earlier processes left too, until
        `rest`. It was opened before. Raises DefinitionError, Unsupported, with nothing begun."""

    async def rest(self, grace: float, /) -> None:
        """Begin nothing more, let attempts under way end within so many seconds, and let go of all
        runs: none is ended by that. Nothing where it does not work."""


class Wrapper(Driver, Protocol):
    """A driver around another one: it logs, measures, or adds what the other lacks."""

    def unwrap(self) -> Driver:
        """The driver inside."""


def driver_as(driver: Any, kind: type[D]) -> D | None:
    """The first driver of this type on the way from the outermost inwards; None if there is none.
    No I/O."""
    while driver is not None:
        if fits(driver, kind):
            return driver  # type: ignore[no-any-return]
        unwrap = getattr(driver, "unwrap", None)
        driver = None if unwrap is None else unwrap()
    return None
