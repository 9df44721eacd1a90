"""What is in the store: its schema and pages, its workers, and runs that do not go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perdure.cli.doctor.checks import Check, fail, ok, warn
from perdure.cli.output import took
from perdure.cli.stores import command_of
from perdure.model.errors import StoreError
from perdure.stores.sqlite.health import Health, damage, examine
from perdure.stores.sqlite.migrate import VERSION

if TYPE_CHECKING:
    from perdure.stores.answers import WorkerSeen

SECOND: Final = 1_000_000
#: A run that was due this long ago should have been taken, in µs.
OVERDUE: Final = 60 * SECOND
#: A clock that is behind what was written by more than this is wrong, in µs.
AHEAD: Final = 60 * SECOND
#: A file over this size is read whole only when that is asked for.
QUICK: Final = 1 << 30
#: Before this there was no perdure: 2024-01-01.
BIRTH: Final = 1_704_067_200 * SECOND
NAMED: Final = 3


def contents(store: str, file: Path, now: int, *, full: bool) -> Iterator[Check]:
    """All checks of what is in a database that is there."""
    try:
        health = examine(file, now - OVERDUE)
    except StoreError as error:
        yield fail("store", str(error), "perdure cannot work on this file")
        return
    yield _schema(store, health)
    yield _journal_mode(health)
    yield _sync(store)
    yield _pages(file, full)
    yield _clock(health, now)
    if health.schema == VERSION:
        workers = _workers(store)
        yield _alive(workers, health)
        yield _stalled(store, health)
        yield _overdue(health, now, workers)
        yield from _crashing(store, health)


def _schema(store: str, health: Health) -> Check:
    if health.schema == VERSION:
        return ok("schema", f"schema {VERSION} is current")
    advice = f"{command_of('db', 'migrate', store=store)}, or start a worker"
    return warn("schema", f"schema {health.schema} is older than {VERSION}", advice)


def _journal_mode(health: Health) -> Check:
    if health.journal_mode == "wal":
        return ok("journal mode", "write-ahead log")
    said = f"{health.journal_mode}, not wal"
    return warn("journal mode", said, "a worker sets it when it opens the database: start one")


def _sync(store: str) -> Check:
    if "sync=normal" in store.partition("?")[2]:
        return warn(
            "sync",
            "normal: a power cut may lose the last commits, the death of a process none",
            "leave out ?sync=normal where that is too much",
        )
    return ok("sync", "full: a power cut loses nothing")


def _pages(file: Path, full: bool) -> Check:
    size = file.stat().st_size
    if size > QUICK and not full:
        return ok("integrity", f"not looked at: {size / QUICK:.1f} GiB; --full reads it whole")
    try:
        found = damage(file)
    except StoreError as error:
        found = [str(error)]
    if found:
        advice = (
            "stop all workers, and restore it from a backup, or rescue it by sqlite3's .recover"
        )
        return fail("integrity", f"the file is damaged: {'; '.join(found)}", advice)
    return ok("integrity", "every page is as it should be")


def _clock(health: Health, now: int) -> Check:
    if now < BIRTH:
        return fail("clock", "the clock of this machine is years behind", "set it")
    if health.newest is not None and health.newest > now + AHEAD:
        ahead = took((health.newest - now) / SECOND)
        said = f"a run was started {ahead} from now, by this machine's clock"
        return warn("clock", said, "let all machines keep time (NTP)")
    return ok("clock", "not behind what was written")


def _workers(store: str) -> Sequence[WorkerSeen]:
    import asyncio

    from perdure.client.client import Client
    from perdure.client.urls import store_of

    async def look() -> Sequence[WorkerSeen]:
        async with Client(store_of(store, read_only=True)) as client:
            return await client._store.workers()

    return asyncio.run(look())


def _alive(workers: Sequence[WorkerSeen], health: Health) -> Check:
    alive = [f"{w.info.name} (process {w.info.pid} on {w.info.host})" for w in workers if w.alive]
    dead = [w.info.name for w in workers if not w.alive]
    said = f"{len(alive)} alive" + (f": {', '.join(alive[:NAMED])}" if alive else "")
    said += ", …" if len(alive) > NAMED else ""
    if dead or health.lost:
        gone = f"{len(dead)} gone without a word" if dead else f"{health.lost} runs of one gone"
        if alive:
            return ok("workers", f"{said}; {gone}: the next beat frees what they held")
        return warn("workers", f"{said}; {gone}", "start a worker: it frees what they held")
    return ok("workers", said)


def _stalled(store: str, health: Health) -> Check:
    if not health.stalled:
        return ok("stalled", "no run is stalled")
    named = "; ".join(f"{name}/{id}: {why}" for name, id, why in health.stalled_first[:NAMED])
    advice = command_of("list", "--where", "status=stalled", store=store)
    workflow, id, _ = health.stalled_first[0]
    advice += f", {command_of('why', f'{workflow}/{id}', store=store)}"
    runs = "1 run cannot" if health.stalled == 1 else f"{health.stalled} runs cannot"
    return warn("stalled", f"{runs} go on: {named}", advice)


def _overdue(health: Health, now: int, workers: Sequence[WorkerSeen]) -> Check:
    if not health.overdue:
        return ok("overdue", "no run waits for a worker")
    named = ", ".join(
        f"{one.count} of {one.definition} for {took((now - one.since) / SECOND)}"
        for one in health.overdue[:NAMED]
    )
    alive = any(seen.alive for seen in workers)
    first = health.overdue[0].definition
    why = "no living worker has these workflows" if alive else "no worker is alive"
    advice = f"{why}: perdure worker FILE APP, with the document of {first}"
    return warn("overdue", f"runs are due and nobody takes them: {named}", advice)


def _crashing(store: str, health: Health) -> Iterator[Check]:
    for workflow, id, crashes in health.crashing:
        name = f"{workflow}/{id}"
        text = f"{name}: its workers died {crashes} times in a row"
        yield warn(
            "crashes", text, f"find out what kills them: {command_of('why', name, store=store)}"
        )
