"""Outages: a store that is away is told of at once, then seldom, and when it is back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from perdure.engine.outages import GIVEN_UP, LONGEST_PAUSE, Outages
from perdure.flow.step import step
from perdure.model.errors import StoreError
from perdure.stores.answers import Beat, CommitDone
from perdure.stores.rows import JournalRow
from tests.virtual.engines import engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


def error() -> StoreError:
    """Always a new one: what was raised remembers where."""
    return StoreError("the disk is away")


@step
async def work() -> str:
    await asyncio.sleep(10)
    return "done"


ONE = graph("one", [task("work")])


class Away(VirtualStore):
    """Away now and then."""

    durable = True
    away = False

    def _check(self) -> None:
        if self.away:
            raise error()

    async def beat(self, worker: str) -> Beat:
        self._check()
        return await super().beat(worker)

    async def claim_runs(self, *args: Any) -> Any:
        self._check()
        return await super().claim_runs(*args)

    def extend(self, worker: str) -> bool:
        return False

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        if self.away:
            done(error())
        else:
            super().commit(rows, done)


def test_the_first_failure_is_told_then_fewer_and_fewer_then_the_end() -> None:
    told: list[str] = []
    now = 0.0
    outages = Outages(lambda: now)
    logger, handler = logging.getLogger("perdure.engine"), logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        outages.note("looking", None)
        while now < 3600:
            outages.note("looking", error())
            outages.note("beating", error())
            now += 0.5
        outages.note("beating", None)
        assert "again" not in told[-1], "one of them still fails"
        outages.note("looking", None)
    finally:
        logger.removeHandler(handler)
    first, *later, last = told
    assert first == "the store did not answer (looking: the disk is away); it is asked again"
    assert len(later) <= 10 + 3600 / LONGEST_PAUSE
    assert later[0] == "the store is away for 2 s now (looking: the disk is away)"
    assert last == "the store answers again, after 3600.0 s"


def test_an_engine_whose_store_is_away_for_an_hour_says_so_in_a_few_lines_and_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store = Away()
        async with engine_on(store, ONE, work) as engine:
            started = await engine.start(ONE, id="1")
            await asyncio.sleep(5)
            store.away = True
            await asyncio.sleep(3600)
            store.away = False
            assert await started.result() == {"work": "done"}
            await asyncio.sleep(10)

    with caplog.at_level(logging.WARNING, "perdure.engine"):
        run(main())
    lines = [record.message for record in caplog.records]
    assert len(lines) < 30
    assert "did not answer" in lines[0]
    assert "answers again" in lines[-1]


def test_who_failed_and_never_asked_again_does_not_prolong_an_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    outages = Outages(lambda: now)
    outages.note("a run that left memory", error())
    now = 10.0
    outages.note("beats", None)
    assert len(caplog.records) == 1, "it may ask again yet"
    now = GIVEN_UP
    outages.note("beats", None)
    assert "the store answers again" in caplog.messages[-1]
    outages.note("a run that left memory", error())
    now += 3600
    outages.note("beats", error())
    assert caplog.messages[-1].startswith("the store did not answer (beats: "), "it is a new one"
