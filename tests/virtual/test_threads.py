"""Time stands still while a thread is at work, whosever it is, and only then."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from perdure.engine.handlers.threads import Threads
from perdure.stores.sqlite.store import SqliteStore
from tests.virtual.threads import run

Work = Callable[[Callable[[], bool], Path], Awaitable[object]]


async def of_the_loop(wait: Callable[[], bool], folder: Path) -> None:
    await asyncio.to_thread(wait)


async def of_a_store(wait: Callable[[], bool], folder: Path) -> None:
    store = SqliteStore(folder / "runs.db", synchronous="normal")
    await store.open()
    assert store._database.writer is not None
    written: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    store._database.writer.submit(lambda db: wait(), written.set_result, aside=True)
    await written
    await store.close()


async def of_a_step(wait: Callable[[], bool], folder: Path) -> None:
    threads = Threads(1)
    await asyncio.wrap_future(threads.submit(wait))
    threads.close()


@pytest.mark.parametrize("work", [of_the_loop, of_a_store, of_a_step])
def test_time_stands_still_while_a_thread_is_at_work(work: Work, tmp_path: Path) -> None:
    gate = threading.Event()

    async def main() -> float:
        loop = asyncio.get_running_loop()
        late = asyncio.ensure_future(asyncio.sleep(3600))
        threading.Timer(0.05, gate.set).start()
        await work(lambda: gate.wait(20), tmp_path)
        assert not late.done()
        late.cancel()
        return loop.time()

    assert run(main()) == 0.0
    assert gate.is_set()


def test_an_idle_thread_keeps_no_time_from_passing(tmp_path: Path) -> None:
    async def main() -> float:
        store = SqliteStore(tmp_path / "runs.db", synchronous="normal")
        await store.open()
        await asyncio.sleep(86_400)
        await store.close()
        return asyncio.get_running_loop().time()

    assert run(main()) == 86_400.0
