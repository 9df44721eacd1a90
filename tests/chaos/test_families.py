"""kill -9 at random moments of sagas that ask for runs of others beside branches of their own.

Whenever it comes: there is one run for each that was asked for, it ends and is undone by itself as
it should, its end is told once; and whoever asked undoes what was done, the last completed first,
each once. PERDURE_CHAOS_KILLS and PERDURE_CHAOS_SEED: see test_sagas.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from pathlib import Path

import msgspec
import pytest

from perdure.client.urls import store_of
from perdure.stores.answers import RunRow
from perdure.stores.port import RunQuery
from tests.chaos.ended import recorded
from tests.chaos.families import FAMILIES
from tests.chaos.lane import RUNS_A_BATCH, Lane, killed_side_by_side
from tests.chaos.saga_journal import Journal
from tests.chaos.sagas import Seen, given, order_of

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("PERDURE_CHAOS_KILLS", "40"))
SEED = int(os.environ.get("PERDURE_CHAOS_SEED") or secrets.randbits(32))
LANES = 2

#: Whose run is asked for by step b.
ASKED = {"whole": "part", "bereaved": "part", "deserted": "broken", "recalled": "lasting"}
#: How runs end, and the beginning of what is said of it.
ENDS = {
    "whole": ("completed", ""),
    "bereaved": ("failed", "node d failed: declined: {n}"),
    "deserted": ("failed", "node b failed: node d failed: declined: {n}"),
    "recalled": ("failed", "node d failed: declined: {n}"),
    "part": ("completed", ""),
    "broken": ("failed", "node d failed: declined: {n}"),
    "lasting": ("canceled", "the run that started it is ending"),
}
#: What has no undo, or none where its end is not known.
NOT_UNDONE = {("lasting", "b")}


class FamilyLane(Lane):
    """Runs of sagas that ask for others."""

    program = "tests.chaos.families"

    def _batch(self) -> None:
        first = len(self.runs)
        for n in range(first, first + RUNS_A_BATCH):
            self.runs.append((self._chance.choice(FAMILIES).name, f"r{n}", n))

    def all_runs(self) -> dict[str, int]:
        """The number of each run, by its name and id, those included that were asked for."""
        asking = {f"{name}/{id}": n for name, id, n in self.runs}
        asked = {f"{ASKED[name]}/{name}/{id}/b": n for name, id, n in self.runs}
        return asking | asked


def check(row: RunRow, n: int, journal: Journal) -> None:
    """One run, by its row and by its journal."""
    name = row.definition
    status, said = ENDS[name]
    (end,) = journal.ends
    assert (row.status, row.owner, end.status) == (status, None, status), row
    assert len(set(journal.done)) == len(journal.done)
    if status == "completed":
        assert (journal.begun, journal.causes, end.failure) == ([], [], None)
        return
    assert end.failure is not None
    assert end.failure.message.startswith(said.format(n=n))
    done = [step for step in reversed(journal.done) if step != "d"]
    assert journal.begun == [step for step in done if (name, step) not in NOT_UNDONE]
    assert journal.undone == journal.begun
    for cause in journal.causes:
        assert cause.message == end.failure.message, "the failure is not the original one"
        assert end.failure.details["undone"] == journal.undone


async def check_all(lane: FamilyLane) -> int:
    """All runs are there, and no others, and ended as they should; how many undos there were."""
    undos = 0
    store = store_of(f"sqlite:///{lane.db}")
    await store.open()
    rows = await store.find(RunQuery(limit=100_000))
    numbers = lane.all_runs()
    assert sorted(f"{row.definition}/{row.id}" for row in rows) == sorted(numbers)
    for row in rows:
        loaded = await store.load(row.key)
        journal = Journal([a for t in recorded(row, loaded) for a in t.actions])
        check(row, numbers[f"{row.definition}/{row.id}"], journal)
        undos += len(journal.undone)
    await store.close()
    return undos


def check_found(lane: FamilyLane) -> None:
    """Every execution had its run's payload: that of whoever asked; and an undo what its step
    gave, also where that was another run."""
    numbers = lane.all_runs()
    for line in lane.log.read_bytes().splitlines():
        one = msgspec.json.decode(line, type=Seen)
        order = order_of(numbers[one.run])
        assert (one.payload, one.text) == (order.n, order.text)
        if one.gave is not None:
            step = one.node.removesuffix("~undo")
            asked = step == "b" and one.run.split("/")[0] in ASKED
            whole = {inside: given(order.n, inside) for inside in "ab"}
            assert one.gave == (whole if asked else given(order.n, step))


@pytest.mark.rule("S-15", "D-18", "W-34", "W-35")
def test_sagas_that_ask_for_others_are_killed_at_any_moment_and_all_end_as_they_should(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sys.stdout.write(f"to play it again: PERDURE_CHAOS_SEED={SEED}\n")
    kills = -(-KILLS // LANES)
    lanes = [
        FamilyLane(tmp_path / str(i), "", ("full", "normal")[i % 2], SEED + i) for i in range(LANES)
    ]
    killed_side_by_side(lanes, kills)
    undos = 0
    for lane in lanes:
        undos += asyncio.run(check_all(lane))
        check_found(lane)
    repeats = sum(lane.check_repeats([]) for lane in lanes)
    with capsys.disabled():
        sys.stdout.write(
            f"\nchaos of families seed={SEED}: {sum(lane.kills for lane in lanes)} kills of "
            f"{sum(lane.launches for lane in lanes)} processes, "
            f"{sum(len(lane.all_runs()) for lane in lanes)} runs, {undos} undos, "
            f"{repeats} repeats\n"
        )
