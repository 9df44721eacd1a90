"""Workers on one file are killed and stopped while runs wait, are signalled, retried, cancelled.

Every run ends as it should, each signal counts once, and a worker that was stopped for longer than
its lease writes nothing of a run that others took. PERDURE_CHAOS_KILLS raises the number of
kills; PERDURE_CHAOS_SEED plays the same chances again.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure.client.urls import store_of
from perdure.stores.answers import LoadedRun, RunRow
from perdure.stores.port import RunQuery
from tests.chaos.crew import Crew
from tests.chaos.ended import recorded
from tests.chaos.waiting import children_of, expected, graph_of

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("PERDURE_CHAOS_KILLS", "72"))
SEED = int(os.environ.get("PERDURE_CHAOS_SEED") or secrets.randbits(32))
#: Workers on each file: all files are worked on at once, since a process waits more than it works.
SIZES = (1, 2, 3)


async def check_ended(crew: Crew) -> None:
    """All runs are there and ended as they should, by their rows and by their journals."""
    store = store_of(f"sqlite:///{crew.db}")
    await store.open()
    found = await store.find(RunQuery(limit=100_000))
    rows = {int(row.id): row for row in found if row.id.isdigit()}
    assert sorted(rows) == list(range(crew.runs))
    check_children([row for row in found if not row.id.isdigit()], crew.runs)
    for row in found:
        check_journal(row, await store.load(row.key), await store.mail(row.key, 0))
    for n, row in rows.items():
        check_row(n, row)
    await store.close()


def check_row(n: int, row: RunRow) -> None:
    status, output = expected(n)
    assert (row.definition, row.status, row.owner) == (graph_of(n).name, status, None), row
    if status == "completed":
        assert outputs(row) == output, row


def check_children(rows: list[RunRow], runs: int) -> None:
    """Each run that was asked for is there once, and no other; all have ended as they should."""
    wanted = {name: status for n in range(runs) for name, status in children_of(n).items()}
    found = {(row.definition, row.id): row.status for row in rows}
    assert len(found) == len(rows)
    never = {name for name in wanted.keys() - found.keys() if wanted[name] == "canceled"}
    assert found == {name: wanted[name] for name in wanted.keys() - never}


def outputs(row: RunRow) -> Any:
    assert row.output is not None
    return msgspec.json.decode(row.output)


def check_journal(row: RunRow, loaded: LoadedRun, mail: Any) -> None:
    """Nothing is missing, the row says what the journal does, each message was taken once."""
    journal = loaded.journal
    recorded(row, loaded)
    assert [letter.n for letter in mail] == list(range(1, len(mail) + 1))
    keys = [letter.id for letter in mail if letter.kind == "signal"]
    assert len(keys) == len(set(keys))
    assert journal[-1].read <= row.mail == len(mail)
    if row.status == "completed":
        told = ["go-1", "go-2"] if row.definition.startswith(("hold", "gated")) else []
        assert sorted(keys) == told
        assert {letter.n for letter in mail if letter.kind == "signal"} <= set(
            range(1, journal[-1].read + 1)
        )


@pytest.mark.rule("G-100", "G-6")
def test_whoever_is_killed_or_stopped_every_run_ends_as_it_should(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sys.stdout.write(f"to play it again: PERDURE_CHAOS_SEED={SEED}\n")
    kills = max(2, round(KILLS * 0.6 / len(SIZES)))
    crews = [
        Crew(tmp_path / str(size), size, "full" if size == 1 else "normal", SEED + size)
        for size in SIZES
    ]
    try:
        with ThreadPoolExecutor(len(SIZES)) as pool:
            list(pool.map(lambda crew: crew.kill_until(kills), crews))
            list(pool.map(Crew.finish, crews))
    finally:
        for crew in crews:
            crew.close()
    repeats = 0
    for crew in crews:
        asyncio.run(check_ended(crew))
        repeats += crew.check_repeats()
    with capsys.disabled():
        sys.stdout.write(f"\n{summary(crews, repeats)}\n")


def summary(crews: list[Crew], repeats: int) -> str:
    def total(name: str) -> int:
        return sum(getattr(crew, name) for crew in crews)

    dead = sum(crew.record.silenced for crew in crews)
    return (
        f"chaos of crews seed={SEED}: {total('kills')} kills, {total('stops')} stops past the "
        f"lease ({total('held')} before a commit, {dead} declared dead) among "
        f"{sum(len(crew.members) for crew in crews)} workers, {total('runs')} runs, "
        f"{sum(len(crew.record.rows) for crew in crews)} rows, {repeats} repeats, "
        f"{sum(len(crew.stalls) for crew in crews)} stalls"
    )
