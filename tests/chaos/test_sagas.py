"""kill -9 at random moments of sagas that succeed, fail, are canceled and come to their deadline.

Whenever it comes: only what was done is undone, the last completed first, each recorded once, and
nothing of a run that succeeded; the run ends with its own failure, and every attempt finds payload,
metadata and notes. PERDURE_CHAOS_KILLS raises the number of kills; PERDURE_CHAOS_SEED plays the
same chances again.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from perdure.client.urls import store_of
from perdure.stores.answers import RunRow
from perdure.stores.port import RunQuery
from tests.chaos.ended import recorded
from tests.chaos.lane import RUNS_A_BATCH, Lane, killed_side_by_side
from tests.chaos.saga_journal import Journal
from tests.chaos.sagas import SAGAS, Seen, given, order_of

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("PERDURE_CHAOS_KILLS", "100"))
SEED = int(os.environ.get("PERDURE_CHAOS_SEED") or secrets.randbits(32))
#: Files worked on at a time: a process waits more than it works.
LANES = 3

#: How a saga's runs end, and the beginning of what is said of it.
ENDS = {
    "succeeds": ("completed", ""),
    "fails": ("failed", "node d failed: declined: {n}"),
    "parallel": ("failed", "node d failed: declined: {n}"),
    "hurried": ("failed", "node d failed: declined: {n}"),
    "stuck": ("failed", "node d failed: declined: {n}"),
    "canceled": ("canceled", "enough of {n}"),
    "late": ("failed", "the run reached its max_duration"),
    "doubtful": ("failed", "node d failed: declined: {n}"),
    "unsaid": ("failed", "node d failed: the output of node d cannot be recorded"),
}  # fmt: skip


#: Whose last step has an undo: nobody knows what it did, whenever its process was killed.
UNDOES_D = ("doubtful", "unsaid")


class SagaLane(Lane):
    """Runs of all the sagas."""

    program = "tests.chaos.sagas"

    def _batch(self) -> None:
        first = len(self.runs)
        for n in range(first, first + RUNS_A_BATCH):
            self.runs.append((self._chance.choice(SAGAS).name, f"r{n}", n))


def undoable(name: str, journal: Journal) -> list[str]:
    """What is to be undone, first to last. Of `late`, b is not where its end is unknown."""
    done = [step for step in reversed(journal.done) if step != "d" or name in UNDOES_D]
    return [step for step in done if (name, step) != ("late", "b")]


def check(name: str, n: int, row: RunRow, output: bytes | None, journal: Journal) -> None:
    """One run, by its row and by its journal."""
    status, said = ENDS[name]
    (end,) = journal.ends
    assert (row.status, row.owner, end.status) == (status, None, status), row
    assert len(set(journal.done)) == len(journal.done)
    if status == "completed":
        assert (journal.begun, journal.causes, end.failure) == ([], [], None)
        assert output is not None
        assert msgspec.json.decode(output) == {step: given(n, step) for step in "abc"}
        return
    assert end.failure is not None
    assert end.failure.message.startswith(said.format(n=n))
    assert journal.begun == undoable(name, journal)
    assert journal.undone == [s for s in journal.begun if (name, s) != ("stuck", "b")]
    for cause in journal.causes:
        assert cause.message == end.failure.message, "the failure is not the original one"
    if name in UNDOES_D:
        assert journal.unknown == ["d"]
    assert end.failure.details["unknown"] == journal.unknown
    if journal.causes:
        assert end.failure.details["undone"] == journal.undone
        failed = ["b"] if name == "stuck" else []
        assert end.failure.details["undo_failed"] == failed


async def check_all(lane: Lane) -> dict[str, Journal]:
    """All runs are there and ended as they should; their journals."""
    found: dict[str, Journal] = {}
    store = store_of(f"sqlite:///{lane.db}")
    await store.open()
    rows = {row.id: row for row in await store.find(RunQuery(limit=100_000))}
    assert sorted(rows) == sorted(id for _, id, _ in lane.runs)
    for name, id, n in lane.runs:
        row = await store.describe(name, id)
        loaded = await store.load(row.key)
        output = row.output
        if row.output_at is not None:
            (output,) = await store.payloads(row.key, [row.output_at])
        journal = Journal([a for t in recorded(row, loaded) for a in t.actions])
        check(name, n, row, output, journal)
        found[f"{name}/{id}"] = journal
    await store.close()
    return found


def seen(lane: Lane) -> Iterator[Seen]:
    for line in lane.log.read_bytes().splitlines():
        yield msgspec.json.decode(line, type=Seen)


def check_found(lane: Lane, journals: dict[str, Journal]) -> int:
    """What executions found; how many were undos."""
    numbers = {f"{name}/{id}": n for name, id, n in lane.runs}
    before: dict[str, set[str | None]] = defaultdict(lambda: {None})
    undos = 0
    for one in seen(lane):
        n, order = numbers[one.run], order_of(numbers[one.run])
        assert (one.payload, one.text) == (order.n, order.text)
        assert one.tenant == f"t{n}"
        assert one.last in before[one.run], f"{one.node} of {one.run} found the note {one.last}"
        if one.node.endswith("~undo"):
            undos += 1
            step, journal = one.node.removesuffix("~undo"), journals[one.run]
            assert step in journal.begun
            assert one.gave == (given(n, step) if step in journal.known else None)
        else:
            before[one.run].add(one.node)
    return undos


@pytest.mark.rule("S-15", "S-16", "D-18", "D-20")
def test_sagas_killed_at_any_moment_undo_what_they_did_once_and_end_as_they_should(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sys.stdout.write(f"to play it again: PERDURE_CHAOS_SEED={SEED}\n")
    kills = -(-KILLS // LANES)
    lanes = [
        SagaLane(tmp_path / str(i), "", ("full", "normal")[i % 2], SEED + i) for i in range(LANES)
    ]
    killed_side_by_side(lanes, kills)
    undos = sum(check_found(lane, asyncio.run(check_all(lane))) for lane in lanes)
    repeats = sum(lane.check_repeats([]) for lane in lanes)
    with capsys.disabled():
        sys.stdout.write(
            f"\nchaos of sagas seed={SEED}: {sum(lane.kills for lane in lanes)} kills of "
            f"{sum(lane.launches for lane in lanes)} processes, "
            f"{sum(len(lane.runs) for lane in lanes)} runs, "
            f"{sum(len(lane.executions()) for lane in lanes)} executions, {undos} of undos, "
            f"{repeats} repeats\n"
        )
