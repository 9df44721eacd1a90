"""Runtime: what an engine underneath perdure has to offer to the code of a workflow, so that this
need not know which one it is.

Values are bytes, JSON text, and what an engine cannot do it refuses: see driver.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from perdure.model.policy import RetryPolicy


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
