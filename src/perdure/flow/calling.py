"""Calling a step. Inside a workflow the call is named and its arguments recorded at once, and it
runs when it is first awaited."""

from __future__ import annotations

from asyncio.events import _get_running_loop
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Raw

from perdure.codec.values import JsonCodec
from perdure.flow.codec import read_in, written_in
from perdure.flow.packing import NOTHING, Packer
from perdure.flow.typed import Reader
from perdure.kernel.code.call import STEP, Call, How
from perdure.kernel.code.calls import Calls
from perdure.kernel.code.loop import WorkflowLoop
from perdure.model.policy import RetryPolicy

#: The type of a workflow's step calls, by which the engine finds their handler.
STEP_TYPE: Final = "STEP"
_encode: Final = JsonCodec().encode


def how_of(step: object, policy: RetryPolicy, timeout: int, queue: str) -> How:
    """How the engine is to run a call of a step; `timeout` in µs, 0 = no limit."""
    chosen = None if queue == "default" else queue
    return How(STEP_TYPE, timeout, step, policy=policy, queue=chosen)


class Callee(Protocol):
    """A step, as its calls see it."""

    _name: str

    @property
    def packer(self) -> Packer:
        """How its arguments are recorded."""

    @property
    def how(self) -> How:
        """How the engine runs its calls."""

    @property
    def otherwise(self) -> Callee:
        """The step of calls whose arguments are recorded in their other form."""

    @property
    def read_output(self) -> Reader:
        """Reads a recorded output."""

    def _called_outside(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], /
    ) -> Coroutine[Any, Any, Any]: ...


def call_step(step: Callee, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
    """The coroutine of a step's call; outside a workflow, of its function. Raises TypeError and
    InvalidRequest for the arguments."""
    loop = _get_running_loop()
    if type(loop) is not WorkflowLoop:
        return step._called_outside(args, kwargs)
    calls: Any = loop.calls
    node, value = calls.named(step._name), step.packer.pack(args, kwargs)
    if calls.recorded is not None or not calls.plain:
        return _call_generally(calls, step, node, value)
    input = None if value is NOTHING else Raw(_encode(value))
    return _outcome(calls, node, input, step.how, step.read_output)


async def _outcome(calls: Calls, node: str, input: Raw | None, how: How, read: Reader) -> Any:
    return read(await calls.step(node, input, how))


def _call_generally(calls: Calls, step: Callee, node: str, value: Any) -> Coroutine[Any, Any, Any]:
    """The same for a call that is replayed, and for values that a codec writes."""
    call = Call(node, STEP, None if value is NOTHING else written_in(calls, value), step.how)
    if calls.recorded is not None and value is not NOTHING:
        call.other = partial(_otherwise, calls, step, value)
    return _outcome_of(calls, call, step.read_output)


async def _outcome_of(calls: Calls, call: Call, read: Reader) -> Any:
    return read_in(calls, read, await calls.dispatch(call))


def _otherwise(calls: Calls, step: Callee, value: Any) -> tuple[Raw, How] | None:
    """The other form in which these arguments may be recorded, and how such a call is run."""
    other = step.packer.other(value)
    return None if other is NOTHING else (written_in(calls, other), step.otherwise.how)
