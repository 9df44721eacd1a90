"""Acts: what a scenario does to its run while that goes on, as data."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from perdure.conformance.driver.effects import open_gate, until_done

if TYPE_CHECKING:
    from perdure.client.run import Run
    from perdure.conformance.driver.stage import Stage


class Act(msgspec.Struct, frozen=True):
    """One thing that happens. `{id}` in texts is the run's id."""

    async def on(self, stage: Stage, run: Run[Any]) -> None:
        """Do it."""
        raise NotImplementedError


class Send(Act, frozen=True):
    """A signal or message; the same key twice counts once."""

    to: Any
    value: Any
    key: str | None = None

    async def on(self, stage: Stage, run: Run[Any]) -> None:
        """Send it."""
        await run.signal(self.to, self.value, dedupe_key=self.key)


class Cancel(Act, frozen=True):
    """Somebody does not want the run any more."""

    reason: str = "enough"

    async def on(self, stage: Stage, run: Run[Any]) -> None:
        """Cancel it."""
        await run.cancel(self.reason)


class Until(Act, frozen=True):
    """Until a step has done this; `of`: of another run."""

    done: str
    of: str = "{id}"

    async def on(self, stage: Stage, run: Run[Any]) -> None:
        """Wait for it."""
        await until_done(self.of.format(id=run.id), self.done)


class Open(Act, frozen=True):
    """A gate is opened."""

    gate: str

    async def on(self, stage: Stage, run: Run[Any]) -> None:
        """Open it."""
        open_gate(run.id, self.gate)


class Pass(Act, frozen=True):
    """Time passes."""

    seconds: float

    async def on(self, stage: Stage, run: Run[Any]) -> None:
        """Let it."""
        await asyncio.sleep(self.seconds)


class Restart(Act, frozen=True):
    """The engine is closed, and another one begins."""

    async def on(self, stage: Stage, run: Run[Any]) -> None:
        """Restart it."""
        await stage.restart()


class Kill(Act, frozen=True):
    """The engine's process is killed, and another one begins."""

    async def on(self, stage: Stage, run: Run[Any]) -> None:
        """Kill it."""
        await stage.kill()


class Other(Act, frozen=True):
    """How another run stands, or what is sent to it."""

    workflow: Any
    id: str
    status: str = ""
    send: Send | None = None

    async def on(self, stage: Stage, run: Run[Any]) -> None:
        """Ask, or send."""
        other = stage.client.get(self.workflow, self.id.format(id=run.id))
        if self.send is not None:
            await self.send.on(stage, other)
        if self.status:
            await stage.stands(other, self.status)
