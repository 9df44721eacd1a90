"""A recorded value that is gone stalls its run with that reason: asking again brings nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from perdure.flow.step import step
from tests.virtual.engines import engine_on, graph, killed, node, task, wait
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

LARGE = "x" * 6000


@step
async def give() -> str:
    return LARGE


@step
async def take(text: str) -> int:
    return len(text)


@step
async def slow(text: str) -> int:
    await asyncio.sleep(30)
    return len(text)


#: The output is asked for when `after` is scheduled; the input of `slow` when it is dispatched.
OUTPUT = graph(
    "output",
    [task("give"), wait("rest", "1m"), task("after", "take", {"text": "{{tasks.give.output}}"})],
)
INPUT = graph(
    "input", [task("give"), node("f", "FORK"), task("slow", "slow", {"text": "{{input.text}}"})]
)


@pytest.mark.parametrize("g", [OUTPUT, INPUT], ids=["an output", "an input"])
def test_a_run_whose_value_is_gone_stalls_and_goes_on_when_it_is_back(g: Any) -> None:
    asked = 0

    class Store(VirtualStore):
        async def payloads(self, key: bytes, refs: Any) -> list[bytes]:
            nonlocal asked
            asked += 1
            return await super().payloads(key, refs)

    async def main() -> None:
        store = Store()
        async with killed(store, g, give, take, slow) as engine:
            await engine.start(g, {"text": LARGE}, id="1")
            await asyncio.sleep(10)
        journal = store._runs[(await store.describe(g.name, "1")).key].journal
        kept = {seq: row for seq, row in journal.items() if seq > 1}
        # The run's own input is read when it is loaded; here it is what comes after that.
        for seq, row in kept.items():
            journal[seq] = msgspec.structs.replace(row, payloads=())
        async with engine_on(store, g, give, take, slow) as engine:
            handle = engine.get(g, "1")
            await asyncio.sleep(300)
            stalled = (await handle.describe()).stalled
            assert stalled is not None
            assert "gone" in stalled
            assert "lacks the payload" in stalled
            assert asked < 5
            journal.update(kept)
            await handle.unpause()
            assert await handle.result(timeout=300) in ({"after": 6000}, {"slow": 6000})

    run(main())


def test_an_input_that_cannot_be_read_at_all_stalls_its_run_with_the_reason() -> None:
    class Store(VirtualStore):
        async def payloads(self, key: bytes, refs: Any) -> list[bytes]:
            if any(seq > 1 for seq, _ in refs):
                raise RuntimeError("not a store's error")
            return await super().payloads(key, refs)

    async def main() -> None:
        store = Store()
        async with killed(store, INPUT, give, slow) as engine:
            await engine.start(INPUT, {"text": LARGE}, id="1")
            await asyncio.sleep(10)
        async with engine_on(store, INPUT, give, slow) as engine:
            await asyncio.sleep(300)
            stalled = (await engine.get(INPUT, "1").describe()).stalled
            assert stalled is not None
            assert "could not be read: RuntimeError" in stalled

    run(main())


def test_who_waits_for_a_stalled_run_is_told_once_why_and_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, OUTPUT, give, take) as engine:
            started = await engine.start(OUTPUT, id="1")
            await asyncio.sleep(1)
            waiting = asyncio.ensure_future(started.result())
            await asyncio.sleep(1)
            [live] = engine._shell.live.values()
            live.stall("its code is gone")
            await asyncio.sleep(600)
            assert not waiting.done()
            [told] = [r.message for r in caplog.records if "waiting for" in r.message]
            assert told == (
                "waiting for output/1, which is stalled: its code is gone. It goes on when a "
                "worker opens that can run it, or when it is unpaused; or cancel it"
            )
            await started.unpause()
            assert await waiting == {"after": 6000}

    with caplog.at_level(logging.WARNING, "perdure.engine"):
        run(main())
