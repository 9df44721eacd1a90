"""Driver and Runtime: what an engine underneath perdure has to offer, so that definitions, clients
and workflow code need not know which one it is.

Both speak in bytes, JSON text: types are the business of the doors. What an engine cannot do it
refuses with Unsupported before anything has happened; it never does something near it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import msgspec

from perdure.model.protocols import fits

if TYPE_CHECKING:
    from perdure.flow.codec import Codec
    from perdure.flow.registry import Registry
    from perdure.model.definition import Definition
    from perdure.model.driving import Outcome, StartRequest
    from perdure.model.policy import RetryPolicy
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


class RawCase(msgspec.Struct, frozen=True):
    """A case of a select. `signal` "" is a timer's, `due` in µs since the epoch; a wait for a
    signal may have a `due` too, and then ends in TimedOut."""

    signal: str = ""
    due: int | None = None


class StepCall(msgspec.Struct, frozen=True):
    """One call of a step. `policy` and `timeout` (µs, 0 = no limit) are those of this very call,
    complete: nothing is to be looked up. `step` is the step itself, for an engine of the same
    process; elsewhere its name says which handler."""

    name: str
    input: bytes | None
    policy: RetryPolicy
    timeout: int
    queue: str = "default"
    step: Any = None


class Runtime(Protocol):
    """A run, as an engine offers it to the code of its workflow; `Context.raw`.

    Every call is recorded and answered alike on replay, and ends early with CancelledError when
    the run is to end. Remembering what a signal said is the context's work, not the engine's.
    """

    @property
    def id(self) -> str:
        """The run's id."""

    @property
    def workflow(self) -> str:
        """The workflow's name."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the run was started with."""

    @property
    def canceled(self) -> bool:
        """Whether the run is to end."""

    def now(self) -> int:
        """The time of what is being handled, in µs since the epoch."""

    def step(self, call: StepCall, /) -> Awaitable[bytes]:
        """The step's output. Raises StepFailed and its like, Unsupported for a policy that the
        engine cannot keep, before anything is scheduled."""

    def wait(self, signal: str, due: int | None = None, /) -> Awaitable[bytes]:
        """The next value of this name that nothing else has taken. Raises TimedOut."""

    def select(self, cases: Sequence[RawCase], /) -> Awaitable[tuple[int, bytes]]:
        """The place of the case that came first, and its value: null of a timer. What is there
        already wins, in the order of the cases. Raises NoCases."""

    def sleep(self, due: int, /) -> Awaitable[None]:
        """Until this time."""

    def patched(self, id: str, /) -> bool:
        """See Context.patched."""
