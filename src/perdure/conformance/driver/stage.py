"""Where a driver is examined: how one is made, how its process dies, an engine at work on it."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Self

from perdure.client.client import Client
from perdure.client.run import Run
from perdure.conformance.driver.capabilities import DriverCapabilities
from perdure.conformance.driver.effects import LOOK, PATIENCE
from perdure.conformance.driver.programs import PROGRAMS
from perdure.flow.driver import Driver


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
