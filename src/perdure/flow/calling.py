"""Calling a step inside a workflow: the call is named and its arguments recorded at once, and it
runs when it is first awaited."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from perdure.flow.codec import read_in, written_in
from perdure.flow.packing import NOTHING
from perdure.flow.typed import Reader
from perdure.kernel.code.call import STEP, Call, How
from perdure.kernel.code.calls import Calls

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from perdure.flow.step import Step

#: The type of a workflow's step calls, by which the engine finds their handler.
STEP_TYPE: Final = "STEP"


def call_step(
    calls: Calls, step: Step[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Coroutine[Any, Any, Any]:
    """The coroutine of a step's call. Raises TypeError and InvalidRequest for its arguments."""
    node = calls.named(step._name)
    value = step.packer.pack(args, kwargs)
    input: Raw | None = None if value is NOTHING else written_in(calls, value)
    if calls.recorded is None and calls.plain:
        return _outcome(calls, node, input, step.how, step.read_output)
    call = Call(node, STEP, input, step.how)
    if calls.recorded is not None and input is not None:
        call.other = partial(_otherwise, calls, step, value)
    return _outcome_of(calls, call, step.read_output)


async def _outcome(calls: Calls, node: str, input: Raw | None, how: How, read: Reader) -> Any:
    return read(await calls.step(node, input, how))


async def _outcome_of(calls: Calls, call: Call, read: Reader) -> Any:
    """The same for a call that is replayed, and for values that a codec writes."""
    return read_in(calls, read, await calls.dispatch(call))


def _otherwise(calls: Calls, step: Step[..., Any], value: Any) -> tuple[Raw, How] | None:
    """The other form in which these arguments may be recorded, and how such a call is run."""
    other = step.packer.other(value)
    return None if other is NOTHING else (written_in(calls, other), step.otherwise.how)


def how_of(step: Step[..., Any]) -> How:
    """How the engine is to run a step's calls."""
    queue = None if step.queue == "default" else step.queue
    return How(STEP_TYPE, step.timeout_us, step, policy=step.retry.policy, queue=queue)
