"""NativeRuntime: a run of the code machine, seen through the Runtime protocol.

For code that is written against any engine: values are JSON text and nothing is remembered. What
a Context asks for itself goes to the machine directly; both make the same calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Raw

from perdure.flow.calling import how_of
from perdure.flow.runtime import RawCase, StepCall
from perdure.kernel.code.call import STEP, WAIT, Call
from perdure.kernel.code.calls import Calls
from perdure.kernel.code.waits import await_first
from perdure.model.errors import NoCases, Unsupported

if TYPE_CHECKING:
    from perdure.flow.runtime import Runtime

_NULL: Final = b"null"


class NativeRuntime:
    """One run's. `calls` is the machine's own surface, for what the protocol does not have."""

    __slots__ = ("calls",)

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    @property
    def id(self) -> str:
        """See Runtime.id."""
        return self.calls.run.id

    @property
    def workflow(self) -> str:
        """See Runtime.workflow."""
        return self.calls.run.definition

    @property
    def metadata(self) -> Mapping[str, str]:
        """See Runtime.metadata."""
        return MappingProxyType(self.calls.run.metadata)

    @property
    def canceled(self) -> bool:
        """See Runtime.canceled."""
        return self.calls.stop_seen

    def now(self) -> int:
        """See Runtime.now."""
        return self.calls.loop.now

    def step(self, call: StepCall, /) -> Awaitable[bytes]:
        """See Runtime.step. Raises Unsupported for a step known by its name alone: calls run in
        the process that makes them, with the very step."""
        if call.step is None:
            raise Unsupported(
                f"step {call.name}: this engine calls steps, not names: give the step"
            )
        how = how_of(call.step, call.policy, call.timeout, call.queue)
        input = None if call.input is None else Raw(call.input)
        made = Call(self.calls.named(call.name), STEP, input, how)
        return self._output(made)

    async def _output(self, call: Call) -> bytes:
        return bytes(await self.calls.dispatch(call))

    async def wait(self, signal: str, due: int | None = None, /) -> bytes:
        """See Runtime.wait."""
        call = Call(self.calls.named(f"wait:{signal}"), WAIT, signal=signal, due=due)
        _, value = await await_first(self.calls, (call,))
        return bytes(value)

    async def select(self, cases: Sequence[RawCase], /) -> tuple[int, bytes]:
        """See Runtime.select."""
        if not cases:
            raise NoCases("select needs something to wait for: give it at least one case")
        name = self.calls.named("select")
        asked = [
            Call(f"{name}.{n}", WAIT, index=n, signal=case.signal or None, due=case.due)
            for n, case in enumerate(cases)
        ]
        index, value = await await_first(self.calls, asked)
        return index, _NULL if value is None else bytes(value)

    async def sleep(self, due: int, /) -> None:
        """See Runtime.sleep."""
        await await_first(self.calls, (Call(self.calls.named("sleep"), WAIT, due=due),))

    def patched(self, id: str, /) -> bool:
        """See Runtime.patched."""
        return self.calls.patched(id)


if TYPE_CHECKING:

    def _is_runtime(made: NativeRuntime) -> Runtime:
        return made
