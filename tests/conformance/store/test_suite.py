"""The suite itself: stores with one thing wrong are caught by the case that is about it, and a
third party can run it without a test framework."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from perdure.conformance import cases, examine
from perdure.model.errors import InvalidRequest, PayloadMissing, StoreError
from perdure.stores.answers import Beat, Claim, CommitDone, Posted, PostedCall
from perdure.stores.memory import MemoryStore
from perdure.stores.memory.run import MemoryRun
from perdure.stores.port import Store
from perdure.stores.rows import NEVER, Finish, JournalRow, Message, Park, StoredDefinition
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
            if run.ended is not None:
                run.ended.at = 0
        return await super().purge(limit)


class MissesAnAct(MemoryStore):
    """Stalls what was given back although somebody has acted since the claim."""

    async def give_back(
        self, worker: str, claim: Claim, stalled: str | None, until: int = NEVER
    ) -> None:
        late = msgspec.structs.replace(claim, mail=NEVER)
        await super().give_back(worker, late, stalled, until)


class SleepsOn(MemoryStore):
    """Stalls for ever what has a deadline."""

    async def give_back(
        self, worker: str, claim: Claim, stalled: str | None, until: int = NEVER
    ) -> None:
        await super().give_back(worker, claim, stalled)


class LooksThenPublishes(MemoryStore):
    """Looks whether a label is another's, and a moment later publishes."""

    async def publish(self, definition: StoredDefinition, *, relabel: bool = False) -> None:
        known = [(one.version, one.hash) for one in await self.definitions(definition.name)]
        if not relabel and any(
            version == definition.version and hash != definition.hash for version, hash in known
        ):
            raise InvalidRequest("another has this label")
        await asyncio.sleep(0)
        await super().publish(definition, relabel=True)


class ForgetsTheVersion(MemoryStore):
    """A retry that ends at once leaves the run on the version before."""

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        without = []
        for row in rows:
            change = row.change
            if isinstance(change, Finish):
                change = msgspec.structs.replace(change, version=None, hash=None)
            without.append(msgspec.structs.replace(row, change=change))
        super().commit(without, done)


class LosesQuietly(MemoryStore):
    """Says of a payload that is gone what it says when it is away."""

    async def payloads(self, key: bytes, refs: Sequence[tuple[int, int]]) -> list[bytes]:
        try:
            return await super().payloads(key, refs)
        except PayloadMissing as error:
            raise StoreError(str(error)) from None


class MixesUpAnswers(MemoryStore):
    """Tells of what was posted, and not what became of it."""

    def subscribe(
        self, call: Callable[[], None], posted: PostedCall | None = None
    ) -> Callable[[], None]:
        if posted is None:
            return super().subscribe(call)
        return super().subscribe(call, lambda sent, _: posted(sent, [Posted("posted")] * len(sent)))


class TalksOn(MemoryStore):
    """Tells those who listened to it also when it was closed."""

    async def close(self) -> None:
        """Forgets to end them."""


class BelievesTooLong(MemoryStore):
    """Nothing was due: it takes that for the state of things."""

    idle = False

    async def claim_runs(
        self, worker: str, definitions: Sequence[str], limit: int
    ) -> Sequence[Claim]:
        claims = [] if self.idle else await super().claim_runs(worker, definitions, limit)
        self.idle = not claims
        return claims


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
        (
            MissesAnAct,
            "test_who_acts_between_a_claim_and_the_stall_it_ends_in_is_heard",
        ),
        (SleepsOn, "test_a_stalled_run_is_due_once_its_deadline_has_come"),
        (LooksThenPublishes, "test_of_two_that_publish_one_label_at_once_one_is_refused"),
        (
            ForgetsTheVersion,
            "test_such_a_retry_is_on_the_version_that_ended_it_and_else_on_the_one_before",
        ),
        (
            MixesUpAnswers,
            "test_who_asks_for_it_is_told_what_was_posted_here_and_with_what_answer",
        ),
        (TalksOn, "test_closing_the_store_ends_all_subscriptions"),
        (
            BelievesTooLong,
            "test_what_becomes_due_is_found_although_nothing_was_due_a_moment_before",
        ),
    ],
)
def test_a_store_with_one_thing_wrong_is_caught_by_the_case_about_it(
    broken: type[MemoryStore], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a store in this process does not tell at once it never tells.
    monkeypatch.setattr("perdure.conformance.store.hints._PATIENCE", 0.5)

    class Suite(MemorySuite):
        def begin(self) -> None:
            self._memory = broken()

    report = examine(Suite(), slow=False)
    assert found in report.failed
    assert "AssertionError" in report.failed[found]
    assert len(report.passed) > len(cases(Suite)) // 2


def test_a_store_that_raises_another_error_than_it_should_is_caught() -> None:
    class Suite(MemorySuite):
        def begin(self) -> None:
            self._memory = LosesQuietly()

    found = "test_a_payload_that_is_gone_is_told_apart_from_a_store_that_is_away"
    report = examine(Suite(), slow=False)
    assert list(report.failed) == [found]
    assert "StoreError: run " in report.failed[found]


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
