"""kill -9 at random moments, over and over: no run is lost, stuck, changed or repeated in vain.

By default a hundred kills of both kinds together. PERDURE_CHAOS_KILLS raises their number;
PERDURE_CHAOS_SEED plays the same chances again.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure.client.client import Client
from perdure.client.urls import store_of
from tests.chaos.ended import recorded
from tests.chaos.lane import Lane, killed_side_by_side, looked_into
from tests.chaos.service import serving

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("PERDURE_CHAOS_KILLS", "72"))
SEED = int(os.environ.get("PERDURE_CHAOS_SEED") or secrets.randbits(32))


async def outputs(lane: Lane) -> dict[str, Any]:
    """The outputs of all runs, and that each one's journal says what its row says."""
    found: dict[str, Any] = {}
    url = f"sqlite:///{lane.db}"
    async with Client(url) as client:
        names = [f"{info.workflow}/{info.id}" async for info in client.runs()]
        assert sorted(names) == sorted(lane.expected())
        for name in names:
            run = client.get(*name.split("/"))
            info = await run.describe()
            assert (info.status, info.stalled, info.failure) == ("completed", None, None), name
            found[name] = await run.result(timeout=5)
    store = store_of(url)
    await store.open()
    for name in names:
        row = await store.describe(*name.split("/"))
        loaded = await store.load(row.key)
        assert row.owner is None
        recorded(row, loaded)
    await store.close()
    return found


def integrity(path: Path) -> str:
    db = looked_into(path)
    try:
        return str(db.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        db.close()


@pytest.mark.rule("G-100", "G-6")
@pytest.mark.parametrize(("sync", "share"), [("full", 1.0), ("normal", 0.4)])
def test_whatever_is_killed_whenever_every_run_ends_right(
    tmp_path: Path, sync: str, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    sys.stdout.write(f"to play it again: PERDURE_CHAOS_SEED={SEED}\n")
    kills = max(2, round(KILLS * share / 2))
    with serving() as service:
        # Two files at a time: the second core would be idle.
        lanes = [
            Lane(tmp_path / name, f"{service.url}/{name}", sync, SEED + i)
            for i, name in enumerate(("one", "two"))
        ]
        killed_side_by_side(lanes, kills)
    for lane in lanes:
        assert lane.kills >= kills
        assert asyncio.run(outputs(lane)) == lane.expected()
        assert integrity(lane.db) == "ok"
    repeats = [lane.check_repeats(service.calls[lane.db.parent.name]) for lane in lanes]
    with capsys.disabled():
        sys.stdout.write(f"\n{summary(sync, lanes, sum(repeats))}\n")


def summary(sync: str, lanes: list[Lane], repeats: int) -> str:
    return (
        f"chaos sync={sync} seed={SEED}: {sum(lane.kills for lane in lanes)} kills of "
        f"{sum(lane.launches for lane in lanes)} processes, "
        f"{sum(len(lane.runs) for lane in lanes)} runs, "
        f"{sum(len(lane.executions()) for lane in lanes)} executions, {repeats} repeats"
    )
