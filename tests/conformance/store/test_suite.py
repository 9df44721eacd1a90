"""The suite itself: stores with one thing wrong are caught by the case that is about it, and a
third party can run it without a test framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from perdure.conformance import cases, examine
from perdure.stores.memory import MemoryStore
from perdure.stores.memory.run import MemoryRun
from perdure.stores.port import (
    Beat,
    CommitDone,
    JournalRow,
    Message,
    Park,
    Posted,
    Store,
)
from tests.conformance.store.places import MemorySuite


class ParksOverMail(MemoryStore):
    """Parks although there is mail: a lost wake-up."""

    async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
        for park in parks:
            run = self._runs.get(park.run)
            if run is not None and run.owner == worker and run.epoch == park.epoch:
                run.let_go(park.ready_at)
                self._moved(park.run, run)
        return [True for _ in parks]


class FreesWithoutFence(MemoryStore):
    """Takes runs over without a row: two histories."""

    async def sweep(self, worker: str) -> int:
        before = {key: (run.last, dict(run.journal)) for key, run in self._runs.items()}
        freed = await super().sweep(worker)
        for key, (last, journal) in before.items():
            run = self._runs[key]
            run.last, run.journal = last, journal
        return freed


class TakesNewerBytes(MemoryStore):
    """Takes another row of the same writer for the row that is there."""

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        same = []
        for row in rows:
            run = self._runs.get(row.run)
            found = None if run is None else run.journal.get(row.seq)
            mine = found is not None and found.writer == row.writer
            commit = found.commit if found is not None and mine else row.commit
            same.append(msgspec.structs.replace(row, commit=commit))
        super().commit(same, done)


class PostsTwice(MemoryStore):
    """Takes a message for another one each time it comes."""

    async def post(self, messages: Sequence[Message]) -> Sequence[Posted]:
        for run in self._runs.values():
            run.ids = {}
        return await super().post(messages)


class LosesWakeUps(MemoryStore):
    """Posts, and leaves a parked run where it is."""

    async def post(self, messages: Sequence[Message]) -> Sequence[Posted]:
        before = {key: run.ready_at for key, run in self._runs.items()}
        posted = await super().post(messages)
        for key, ready_at in before.items():
            run: MemoryRun = self._runs[key]
            run.ready_at = ready_at
            self._places.put(key, run)
        return posted


class NeverExpires(MemoryStore):
    """A worker that stopped keeps its runs for ever."""

    async def beat(self, worker: str) -> Beat:
        for id in self._leases:
            self.extend(id)
        return await super().beat(worker)


class PurgesTooEarly(MemoryStore):
    """Forgets what has just ended."""

    async def purge(self, limit: int) -> int:
        for run in self._runs.values():
            run.finished = None if run.finished is None else 0
        return await super().purge(limit)


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (ParksOverMail, "test_a_run_with_unread_mail_is_not_parked"),
        (FreesWithoutFence, "test_the_dead_worker_who_was_not_dead_is_refused"),
        (TakesNewerBytes, "test_newer_bytes_at_a_taken_number_are_refused"),
        (PostsTwice, "test_the_same_id_again_is_a_duplicate_also_after_the_end"),
        (LosesWakeUps, "test_mail_makes_a_run_without_an_owner_due_now_and_no_later"),
        (
            NeverExpires,
            "test_a_worker_that_beats_keeps_its_runs_and_one_that_does_not_loses_them",
        ),
        (PurgesTooEarly, "test_nothing_that_ended_lately_is_purged_whatever_its_time"),
    ],
)
def test_a_store_with_one_thing_wrong_is_caught_by_the_case_about_it(
    broken: type[MemoryStore], found: str
) -> None:
    class Suite(MemorySuite):
        def begin(self) -> None:
            self._memory = broken()

    report = examine(Suite(), slow=False)
    assert found in report.failed
    assert "AssertionError" in report.failed[found]
    assert len(report.passed) > len(cases(Suite)) // 2


def test_a_right_store_passes_and_the_report_says_how_many() -> None:
    report = examine(MemorySuite(), slow=False)
    assert report.failed == {}
    slow = {name for name in cases(MemorySuite) if getattr(getattr(MemorySuite, name), "slow", 0)}
    assert slow != set()
    assert report.uncovered == dict.fromkeys(slow, "it takes long and was left out")
    assert (set(report.passed) | slow, report.declared) == (set(cases(MemorySuite)), {})
    counts = f"{len(report.passed)} passed, 0 failed, 0 declared, {len(slow)} uncovered"
    assert str(report).splitlines()[0] == counts


def test_a_store_that_cannot_be_made_fails_every_case_with_its_error() -> None:
    class Suite(MemorySuite):
        def make(self) -> Store:
            raise ValueError("no such server")

        def kill(self, store: Any, worker: str) -> None:
            raise NotImplementedError

    report = examine(Suite(), slow=False)
    assert report.passed == ()
    assert all("no such server" in why for why in report.failed.values())
