"""Where a driver is examined: how one is made, how its process dies, and how a scenario is played
on it. Whatever a scenario is about, some things are asked of every run: that all who wait hear the
same end, that a finished run takes no signal, and that a cancel of it is quiet.
"""

from __future__ import annotations

import asyncio
import unittest
import uuid
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Self

from perdure.client.client import Client
from perdure.client.run import Run
from perdure.conformance.driver.capabilities import DriverCapabilities
from perdure.conformance.driver.effects import DONE, LOOK, PATIENCE
from perdure.conformance.driver.programs import PROGRAMS, anything, kit_immediately, kit_parent
from perdure.conformance.driver.scenario import Scenario
from perdure.flow.driver import Driver
from perdure.model.errors import Failure, NotFound, RunFailed, Unsupported


class DriverBed:
    """What the author of a driver provides."""

    def begin(self) -> None:
        """Called before each case: from now on `make` gives drivers on one new, empty place."""

    def end(self) -> None:
        """Called after each case, when everything is closed."""

    def make(self, things: Sequence[Any]) -> AbstractAsyncContextManager[Driver]:
        """A driver on this case's place, whose engine executes these workflows and steps in this
        process while the context is open. Made again, it is another process's on the same runs."""
        raise NotImplementedError

    async def kill(self, driver: Driver) -> None:
        """Let the driver's engine be dead, as if its process had been killed: nothing more is
        written, and the place notices. Here: not known, and what needs it stays uncovered."""
        raise unittest.SkipTest("how an engine of this driver is killed is not said")

    def capabilities(self) -> DriverCapabilities:
        """What the driver lacks, and why. Here: nothing. What is said to be lacking is not left
        out: it is asked for, and has to be refused with Unsupported before any effect."""
        return DriverCapabilities()


class Stage:
    """A bed with an engine at work."""

    def __init__(self, bed: DriverBed) -> None:
        self.bed = bed
        self._context: AbstractAsyncContextManager[Driver] | None = None
        self._killed: list[AbstractAsyncContextManager[Driver]] = []
        self.client: Client

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._end()

    async def _begin(self) -> None:
        self._context = self.bed.make(PROGRAMS)
        self._driver = await self._context.__aenter__()
        self.client = Client(self._driver)

    async def _end(self) -> None:
        if self._context is not None:
            await self._context.__aexit__(None, None, None)
            self._context = None

    async def restart(self) -> None:
        """Close the engine; another one begins."""
        await self._end()
        await self._begin()

    async def kill(self) -> None:
        """Kill the engine; another one begins."""
        await self.bed.kill(self._driver)
        assert self._context is not None
        self._killed.append(self._context)  # never left: a killed process closes nothing
        self._context = None
        await self._begin()

    async def stands(self, run: Run[Any], status: str) -> None:
        """Until a run stands so. Raises AssertionError."""
        seen = ""
        try:
            async with asyncio.timeout(PATIENCE):
                while (seen := await run.status()) != status:  # noqa: ASYNC110  # asked, not told
                    await asyncio.sleep(LOOK)
        except TimeoutError:
            raise AssertionError(f"{run} is {seen}, not {status}") from None


def fresh_id() -> str:
    """An id that no other case uses."""
    return f"kit-{uuid.uuid4().hex[:12]}"


async def play(bed: DriverBed, scenario: Scenario) -> None:
    """Play a scenario and check what came of it."""
    async with Stage(bed) as stage:
        id = fresh_id()
        given = () if scenario.input is None else (_filled(scenario.input, id),)
        start: Any = stage.client.start
        run: Run[Any] = await start(scenario.runs, *given, id=id, **dict(scenario.options))
        for act in scenario.script:
            await act.on(stage, stage.client.get(scenario.runs, id))
        run = stage.client.get(scenario.runs, id)
        ends = await asyncio.gather(_end_of(run), _end_of(run))
        assert ends[0] == ends[1] == await _end_of(run), "who waits for a run hears its one end"
        scenario.check(ends[0], await run.status(), DONE[id], id)
        for act in scenario.after:
            await act.on(stage, run)
        await _is_over(run)


async def _end_of(run: Run[Any]) -> Any:
    """The output, or a record of the failure."""
    try:
        return await run.result(timeout=PATIENCE)
    except Failure as failure:
        return type(failure), failure.kind, failure.message


async def _is_over(run: Run[Any]) -> None:
    """What is asked of a finished run."""
    before = await run.status()
    try:
        await run.signal(anything, None)
    except NotFound:
        pass
    else:
        raise AssertionError("a finished run took a signal")
    await run.cancel("too late")
    assert await run.status() == before, "a cancel changed a finished run"


def _filled(value: Any, id: str) -> Any:
    return value.format(id=id) if isinstance(value, str) else value


async def refuses(bed: DriverBed, capability: str) -> None:
    """Fails unless the driver refuses what it is said to lack, before any effect."""
    asked: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "children": (kit_parent, (False,)),
        "immediate_retry": (kit_immediately, ()),
    }
    program, given = asked[capability]
    async with Stage(bed) as stage:
        id = fresh_id()
        start: Any = stage.client.start
        run: Run[Any] = await start(program, *given, id=id)
        try:
            await run.result(timeout=PATIENCE)
        except RunFailed as failed:
            kind = failed.kind
            assert kind == Unsupported.kind, f"said to lack {capability}, and failed with {kind}"
        else:
            raise AssertionError(f"said to lack {capability}, and did it")
        assert DONE[id] == [], f"refused {capability} after an effect: {DONE[id]}"
