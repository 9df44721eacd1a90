"""How a scenario is played on a driver. Whatever it is about, some things are asked of every run:
that all who wait hear the same end, that a finished run takes no signal, and that a cancel of it
is quiet.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from perdure.client.run import Run
from perdure.conformance.driver.effects import DONE, PATIENCE
from perdure.conformance.driver.programs.lasting import kit_parent
from perdure.conformance.driver.programs.running import kit_immediately
from perdure.conformance.driver.programs.telling import anything
from perdure.conformance.driver.scenario import Scenario
from perdure.conformance.driver.stage import DriverBed, Stage
from perdure.model.errors import Failure, NotFound, RunFailed, Unsupported


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
