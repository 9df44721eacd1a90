"""Work: start or join one run in this process, and wait for its end, a signal or a time limit.

Stopping is gentle: nothing new is started, attempts under way get a moment to end and are
recorded, and the run stays as it is for whoever goes on with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from perdure.cli.calls import stalled
from perdure.cli.exits import RUN_FAILED, Trouble
from perdure.cli.logs import log_to
from perdure.cli.progress import Progress
from perdure.cli.stop import Stop
from perdure.client.client import Client
from perdure.client.engine import Engine
from perdure.client.run import Run
from perdure.client.run_info import RunInfo, info_of
from perdure.client.urls import sqlite_file, store_of
from perdure.engine.attempts.secrets import Secrets
from perdure.engine.handlers.http_options import HttpOptions
from perdure.model.definition import Definition
from perdure.model.errors import AlreadyStarted, Failure, NotFound, StoreError
from perdure.model.status import TERMINAL

if TYPE_CHECKING:
    from perdure.stores.answers import RunRow

#: Seconds between looks at a run that another process works on.
LOOK: Final = 0.5


class Job(msgspec.Struct):
    """What to run, and how. `beside`: the steps and definitions that are served with it.
    `seconds`: how long to wait, None = until the end. `grace`: how many seconds attempts under
    way get to end when this process stops. `document`: the name of its file."""

    definition: Definition[Any, Any]
    beside: list[Any]
    id: str
    store: str
    input: Any = None
    input_given: bool = False
    config: Mapping[str, Any] | None = None
    start_node: str | None = None
    seconds: float | None = None
    hosts: tuple[str, ...] = ()
    grace: float = 5
    document: str = ""
    #: What to say once the run has started.
    parting: str = ""

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.definition.name


class Ending(msgspec.Struct):
    """How it came out. `why`: the run ended, the time was over, or a signal stopped us.
    `unrecorded`: the runs, also others, whose last rows the store did not take; None: it took
    all."""

    why: Literal["ended", "timeout", "stopped"]
    info: RunInfo
    output: Any = None
    failure: Failure | None = None
    signal: int = 0
    unrecorded: list[str] | None = None


async def work(job: Job, progress: Progress) -> Ending:
    """Start or join, work, wait. Raises what starting raises, and Trouble for a run that cannot
    go on."""
    screen = progress.screen
    ended = await _ended_before(job, progress)
    if ended is not None:
        return ended
    secrets = Secrets.from_environment()
    http = HttpOptions(allow_hosts=job.hosts or None)
    served = [job.definition, *job.beside]
    engine = Engine(job.store, served, secrets=secrets, http=http, grace=job.grace, name="cli")
    engine.observe(progress)
    stop = Stop(screen, job.grace)
    with stop as stopped, log_to(screen, secrets.redact, progress.raised):
        async with engine:
            run = await _start(engine, job, progress)
            why = await _wait(engine, run, progress, stopped, job.seconds)
            _part(engine, job, progress, why)
            ending = await _ending(run, progress, why, stop.signal)
        ending.unrecorded = engine._shell.unrecorded
        return ending


async def _ended_before(job: Job, progress: Progress) -> Ending | None:
    """The recorded outcome of a run that has ended already. Only looked at: an engine would take
    up whatever else is due, and begin steps that nobody asked for here."""
    if not _is_there(job.store):
        return None
    try:
        async with Client(store_of(job.store, read_only=True)) as client:
            run = client.get(job.name, job.id)
            row = await run._row()
            if row.status not in TERMINAL:
                return None
            await _joined(run, row, job, progress)
            return await _ending(run, progress, "ended", 0)
    except NotFound:
        _check_input(job)
        return None
    except StoreError:
        return None  # what is wrong with the store is the engine's to say


def _check_input(job: Job) -> None:
    job.definition.check_input(None if job.input is None else msgspec.json.encode(job.input))


def _is_there(store: str) -> bool:
    file = sqlite_file(store)
    return file is not None and Path(file).exists()


def _part(engine: Engine, job: Job, progress: Progress, why: str) -> None:
    """Say what leaving waits for; from here on nothing that is dispatched starts here."""
    progress.stopping = why != "ended"
    others = any(live.work.working for live in engine._shell.live.values())
    if why == "timeout":
        progress.screen.note(f"the time is over: steps under way have {job.grace:g} s to end")
    elif why == "ended" and others:
        progress.screen.note(f"ended; steps of other runs have {job.grace:g} s to end")


async def _start(engine: Engine, job: Job, progress: Progress) -> Run[Any]:
    # By its name: what it gives is shown as it was recorded.
    run: Run[Any] = engine.get(job.name, job.id)
    row = await _row_of(run)
    if row is None:
        try:
            await engine.start(
                job.definition, job.input, id=job.id, config=job.config, start_node=job.start_node
            )
        except AlreadyStarted:
            row = await run._row()
        else:
            return run
    # Read before anything is said of it: what is recorded from then on is told.
    history = [record async for record in run.history()]
    await _joined(run, row, job, progress)
    if _is_others(engine, row):
        progress.joined(history)
    else:
        progress.recalled(history)
    return run


async def _row_of(run: Run[Any]) -> RunRow | None:
    """The run's row, if it is there: then it is joined, also without an input."""
    try:
        return await run._row()
    except NotFound:
        return None


def _is_others(engine: Engine, row: RunRow) -> bool:
    """Whether a run goes on without this process: another one holds it, or it only waits."""
    if row.key in engine._shell.live or row.status in TERMINAL:
        return False
    held = row.owner not in (None, engine._shell.worker)
    return held or row.ready_at > engine._clock.now()


async def _joined(run: Run[Any], row: RunRow, job: Job, progress: Progress) -> None:
    """Say how the run stands that is there already, and what of this command it does not take."""
    if row.status in TERMINAL:
        progress.screen.note(f"{run} has already {_PAST[row.status]}: this is its recorded outcome")
    elif not progress.here:
        progress.screen.note(f"{run} is there already; waiting for whoever works on it")
    if row.hash != job.definition.hash:
        what = "of the document and keeps it" if job.definition.source else "of the code"
        progress.screen.note(
            f"{run} was started with version {row.version} {what}; "
            f"{job.document} is version {job.definition.version} now"
        )
    if job.input_given and await _first_input(run) != job.input:
        progress.screen.note(f"{run} was started with another input and keeps that one")


_PAST: Final = {"completed": "completed", "failed": "failed", "canceled": "been canceled"}


async def _first_input(run: Run[Any]) -> Any:
    async for record in run.history():
        return record.get("input")
    return None


async def _wait(
    engine: Engine,
    run: Run[Any],
    progress: Progress,
    stopped: asyncio.Future[None],
    seconds: float | None,
) -> Literal["ended", "timeout", "stopped"]:
    ended = asyncio.ensure_future(_end(run))
    watched = asyncio.ensure_future(_watch(engine, run, progress))
    try:
        await asyncio.wait(
            {ended, watched, stopped}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if ended.done():
            ended.result()
            return "ended"
        if watched.done():
            watched.result()
        return "stopped" if stopped.done() else "timeout"
    finally:
        ended.cancel()
        watched.cancel()
        await asyncio.wait({ended, watched})


async def _end(run: Run[Any]) -> None:
    try:
        await run.result()
    except Failure:
        return  # an outcome too; it is read when everything is over


async def _watch(engine: Engine, run: Run[Any], progress: Progress) -> None:
    """Raise Trouble when the run stalls; meanwhile follow it where another process records.

    A run that only waits is in nobody's memory, until somebody claims it: then its epoch grows.
    """
    row = await run._row()
    key, epoch = row.key, row.epoch
    while True:
        gone = key not in engine._shell.live
        row = await run._row()
        if row.stalled is not None:
            why = "\n".join(stalled(row.stalled))
            raise Trouble(
                f"{run} cannot go on: {why}\n"
                "Mend that and give the same command again: the run keeps what it has recorded.",
                RUN_FAILED,
                "stalled",
            )
        if row.status not in TERMINAL and gone and (row.owner or row.epoch != epoch):
            if progress.here and row.owner not in (None, engine._shell.worker):
                progress.left()
            progress.follow([record async for record in run.history(after=progress.seen)])
        epoch = row.epoch
        await asyncio.sleep(LOOK)


async def _ending(
    run: Run[Any], progress: Progress, why: Literal["ended", "timeout", "stopped"], number: int
) -> Ending:
    info = info_of(await run._row())
    if not progress.here:
        progress.complete([record async for record in run.history()])
    elif info.failure is not None:  # it may have failed in part before it came here
        progress.recalled([record async for record in run.history()])
    if why != "ended":
        return Ending(why, info, signal=number)
    try:
        return Ending(why, info, await run.result())
    except Failure as failure:
        return Ending(why, info, failure=failure)
