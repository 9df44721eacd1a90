"""Handler: executes the attempts of one node type. Attempt: what it is given.

A handler runs user code or talks to the world; whatever it raises is that attempt's failure and
never the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from perdure.kernel.notes import Notes
from perdure.model.errors import PerdureError, Permanent
from perdure.model.policy import RetryPolicy
from perdure.model.step_context import StepContext


class Outputs(Protocol):
    """What nodes gave, as it is recorded."""

    def get(self, node: str, /) -> Raw | None:
        """The output of a completed node that may be read here; None of all others."""


class Around(msgspec.Struct, frozen=True, gc=False):
    """What an attempt is told of its run, where its handling asks for that (`Handling.around`):
    values as they are recorded. `outputs`: of the completed ones of the nodes that it may read;
    `metadata`: what the run was started with; `noted`: what its attempts noted since."""

    payload: Raw | None
    outputs: Outputs
    metadata: Mapping[str, str]
    noted: Notes


class Given(msgspec.Struct, frozen=True, gc=False):
    """What a handler gives instead of an output alone. `write`: makes of the output what is
    recorded, where that is not the engine's own codec; it raises InvalidRequest."""

    output: Any
    write: Callable[[Any], Raw]


class Attempt(msgspec.Struct, gc=False):
    """One execution of a task. `number` counts from 0. `input` is the stored input decoded anew
    for this attempt (it may be changed freely), with secrets filled in. `timeout` in µs as the
    node says it: None = the handler's default, 0 = no limit."""

    workflow: str
    run_id: str
    node: str
    type: str
    task: str
    number: int
    input: Any
    timeout: int | None = None
    #: The step to run, where the definition holds it.
    step: Any = None
    around: Around | None = None
    #: What its code notes, as it is recorded: goes with its output, should there be one.
    noted: dict[str, Raw] | None = None


class StepNotRegistered(PerdureError):
    """No step of this name is registered here; nothing ran, no attempt is spent (D-36). `attempt`:
    the one that was to run: raised out of user's code, it is of another engine's."""

    def __init__(self, message: str, step: str, attempt: Attempt) -> None:
        super().__init__(message)
        self.step = step
        self.attempt = attempt


class Unrecordable(Permanent):
    """A step returned what can never be recorded, and what it did is done."""


class Handler(Protocol):
    """Runs attempts of one node type. Shared by all runs; must keep no state per attempt."""

    def timeout(self, attempt: Attempt, /) -> int:
        """How long this attempt may take, in µs; 0 = no limit. Must not raise."""

    def policy(self, step: str, /) -> RetryPolicy:
        """The retry policy the named step was declared with (one attempt if there is none)."""

    def retries(self, attempt: Attempt, error: Exception, /) -> bool:
        """Whether this error may be tried again, by the step's own retry_on/never_on."""

    async def run(self, attempt: Attempt, context: StepContext, /) -> Any:
        """Execute and return the output: a value that encodes to JSON.

        Cancelled (asyncio) when the attempt's time is over or the engine stops; `context` is
        also current_step() while this runs.
        """

    async def close(self) -> None:
        """Release what the handler holds (connections, threads)."""
