"""FunctionProgram: what the code machine needs of a workflow's function."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from perdure.codec.failures import failure_from, record_failure
from perdure.flow.codec import written_in
from perdure.kernel.code.call import CHILD, SPAWN, STEP, AnyCall
from perdure.kernel.code.calls import Calls
from perdure.model.definition import Definition
from perdure.model.errors import RunFailed, StepFailed
from perdure.model.failure import FailureRecord


class FunctionProgram:
    """One workflow's function, for any number of runs. `call`: its coroutine on a run's input."""

    __slots__ = ("_call", "grace", "hash", "max_duration", "name", "version")

    def __init__(
        self,
        workflow: Definition[Any, Any],
        grace: int,
        call: Callable[[Calls], Coroutine[Any, Any, Any]],
    ) -> None:
        self._call = call
        self.name = workflow.name
        self.version = workflow.version
        self.hash = workflow.hash
        self.grace = grace
        self.max_duration = workflow.max_duration

    async def main(self, calls: Calls, /) -> Raw:
        """Call the function; its output as JSON text."""
        return written_in(calls, await self._call(calls))

    def failure(self, error: BaseException, /) -> FailureRecord:
        """What is recorded of the exception that ended the function."""
        return record_failure(error)

    def error(self, failure: FailureRecord, call: AnyCall, attempt: int, /) -> BaseException:
        """What a call raises that ended so."""
        if call.kind in (CHILD, SPAWN):
            return failure_from(failure, RunFailed)
        if call.kind != STEP:
            return failure_from(failure)
        made = failure_from(failure, StepFailed)
        if isinstance(made, StepFailed):
            made.step = call.node if call.how is None else call.how.step.name
            made.attempt = attempt
            made.workflow = self.name
        return made


if TYPE_CHECKING:
    from perdure.kernel.code.running import Program

    def _is_program(made: FunctionProgram) -> Program:
        return made
