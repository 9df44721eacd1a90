"""A worker in real time, on a file: it serves until it is told to stop; what blocks it is named."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from perdure.client.client import Client
from perdure.client.engine import Engine
from perdure.flow.step import step
from perdure.model.errors import Canceled
from perdure.stores.sqlite.store import SqliteStore
from tests.virtual.engines import graph, task, wait_for

ONE = graph("one", [wait_for("ok", "approved")])


@step(timeout=None)
async def slow() -> str:
    await asyncio.sleep(0.3)
    return "done"


SLOW = graph("two", [task("slow"), task("again", "slow")])


def store_in(folder: Path) -> SqliteStore:
    return SqliteStore(folder / "runs.db", unsafe=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serving_ends_at_a_signal_and_what_is_under_way_is_recorded(
    tmp_path: Path, number: signal.Signals
) -> None:
    # scenarios 39, 117, 118
    async def main() -> None:
        before = signal.getsignal(number)
        async with Engine(store_in(tmp_path), [SLOW, slow]) as engine:
            assert signal.getsignal(number) is before, "a library leaves signals alone"
            started = await engine.start(SLOW, id="1")
            asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), number)
            await engine.serve()
            assert signal.getsignal(number) is before
            assert await started.status() == "running", "shutdown changes no status"
        async with Client(store_in(tmp_path)) as client:
            names = [record["do"] async for record in client.get("two", "1").history()]
            assert names.count("CompleteTask") == 1, "the step under way ended"
        async with Engine(store_in(tmp_path), [SLOW, slow]) as engine:
            assert await engine.get(SLOW, "1").result() == {"again": "done"}

    asyncio.run(main())


def test_a_parked_run_on_a_file_is_told_by_its_own_process_and_by_another(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            Engine(store_in(tmp_path), [ONE], park_after=0, poll=0.1) as engine,
            Client(store_in(tmp_path)) as outside,
        ):
            runs = [await engine.start(ONE, id=str(number)) for number in range(3)]
            async with asyncio.timeout(60):
                while engine._shell.live:  # noqa: ASYNC110  it is seen from outside only
                    await asyncio.sleep(0.05)
            await runs[0].signal("approved", "here")
            await outside.get("one", "1").signal("approved", "there")
            await outside.get("one", "2").cancel("not needed")
            async with asyncio.timeout(60):
                assert await runs[0].result() == {"ok": "here"}
                assert await runs[1].result() == {"ok": "there"}
                with pytest.raises(Canceled, match="not needed"):
                    await runs[2].result()

    asyncio.run(main())


def test_code_that_blocks_the_loop_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # scenario 119
    monkeypatch.setattr("perdure.engine.worker.watchdog.LOOK_EVERY", 0.02)
    monkeypatch.setattr("perdure.engine.worker.watchdog.BLOCKED", 0.05)

    @step
    async def selfish() -> str:
        end = time.monotonic() + 60
        while "blocked" not in caplog.text and time.monotonic() < end:
            time.sleep(0.01)  # noqa: ASYNC251  this is what must not be done
        return "done"

    g = graph("g", [task("selfish")])

    async def main() -> None:
        async with Engine(store_in(tmp_path), [g, selfish]) as engine:
            assert await engine.run(g, id="1") == {"selfish": "done"}

    asyncio.run(main())
    assert "the event loop is blocked" in caplog.text
    assert "in selfish" in caplog.text
