"""FunctionProgram: what the code machine needs of a workflow's function."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from perdure.codec.failures import failure_from, record_failure
from perdure.flow.codec import read_in, written_in
from perdure.flow.context import Context
from perdure.flow.typed import or_null
from perdure.kernel.code.call import CHILD, SPAWN, STEP, AnyCall
from perdure.kernel.code.calls import Calls
from perdure.model.errors import RunFailed, StepFailed
from perdure.model.failure import FailureRecord

if TYPE_CHECKING:
    from perdure.flow.workflow import Workflow


class FunctionProgram:
    """One workflow's function, for any number of runs."""

    __slots__ = ("_workflow", "grace", "hash", "max_duration", "name", "version")

    def __init__(self, workflow: Workflow[Any, Any]) -> None:
        self._workflow = workflow
        self.name = workflow.name
        self.version = workflow.version
        self.hash = workflow.hash
        self.grace = workflow.grace
        self.max_duration = workflow.max_duration

    async def main(self, calls: Calls, /) -> Raw:
        """Call the function; its output as JSON text."""
        return written_in(calls, await self._called(calls))

    def _called(self, calls: Calls) -> Coroutine[Any, Any, Any]:
        workflow = self._workflow
        context = Context(calls, workflow)
        input = calls.run.input
        if not workflow.takes_input and calls.recorded is None:
            workflow.check_input(input)  # who started it by name did not know
        if workflow.takes_input and not (input is None and workflow.has_default):
            read = workflow.read_input
            value = read(or_null(None)) if input is None else read_in(calls, read, input)
            return workflow.fn(context, value)
        return workflow.fn(context)

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
