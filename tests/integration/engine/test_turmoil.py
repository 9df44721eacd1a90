"""Runs that wait and are told things, by chance, while engines die, go deaf and are presumed dead.

Whatever happened, once nothing goes wrong any more every run ends, each signal served one wait,
no message was applied twice, and what was canceled stayed canceled. The seed decides everything.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from perdure.client.client import Client
from perdure.client.engine import Engine
from perdure.codec.journal import decode_row
from perdure.flow.step import step
from perdure.kernel.actions import BufferSignal, ConsumeSignal
from perdure.kernel.fold import fold
from perdure.model.errors import (
    Canceled,
    InvalidRequest,
    NotFound,
    RunActive,
    RunFinished,
    StoreError,
)
from perdure.stores.answers import Beat, Mail, Posted
from perdure.stores.rows import Message, Park
from tests.integration.engine.test_faults import RoughStore
from tests.virtual.crashing import rows_of
from tests.virtual.engines import client_on, engine_on, graph, kill, node, task, wait, wait_for
from tests.virtual.loop import run

RUNS = 6
WAITS = 3
LEASE = 3_000_000
#: What happened over all seeds.
SEEN: Counter[str] = Counter()


@step
async def brief(n: int) -> int:
    await asyncio.sleep(0.2)
    return n


PATIENT = graph(
    "patient",
    [
        node("f", "FORK"),
        *(wait_for(f"w{i}", "item") for i in range(WAITS)),
        *(task(f"s{i}", "brief", {"n": f"{{{{tasks.w{i}.output}}}}"}) for i in range(WAITS)),
        wait("rest", "2s"),
        node("j", "JOIN"),
        wait_for("last", "end"),
        task("done", "brief", {"n": 0}),
    ],
    [
        "f rest", "rest j", *(f"f w{i}" for i in range(WAITS)),
        *(f"w{i} s{i}" for i in range(WAITS)), *(f"s{i} j" for i in range(WAITS)),
        "j last", "last done",
    ],
    output=[f"{{{{tasks.s{i}.output}}}}" for i in range(WAITS)],
)  # fmt: skip


class RougherStore(RoughStore):
    """Mail, parks and beats, too, come late, get lost, or are answered by an error."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.deaf: set[str] = set()
        self.seen: Counter[str] = Counter()

    async def _maybe(self, work: Callable[[], Awaitable[Any]]) -> Any:
        await asyncio.sleep(self.chance.uniform(0, 0.02))
        fate = self.chance.random() if self.rough else 1.0
        if fate < 0.08:
            raise StoreError("the disk is away")
        answer = await work()
        await asyncio.sleep(self.chance.uniform(0, 0.02))
        if fate < 0.16:
            raise StoreError("the answer was lost")
        return answer

    async def post(self, messages: Sequence[Message]) -> Sequence[Posted]:
        answer: Sequence[Posted] = await self._maybe(
            lambda: super(RougherStore, self).post(messages)
        )
        return answer

    async def mail(self, key: bytes, after: int) -> Sequence[Mail]:
        reading = super().mail
        answer: Sequence[Mail] = await self._maybe(lambda: reading(key, after))
        return answer

    async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
        parking = super().park
        answer: Sequence[bool] = await self._maybe(lambda: parking(worker, parks))
        self.seen["parked"] += sum(answer)
        return answer

    async def beat(self, worker: str) -> Beat:
        if worker in self.deaf:
            raise StoreError("the network is away")
        beating = super().beat
        answer: Beat = await self._maybe(lambda: beating(worker))
        return answer

    def extend(self, worker: str) -> bool:
        raise StoreError("no thread here")

    def subscribe(self, call: Any, posted: Any = None) -> Callable[[], None]:
        if self.chance.random() < 0.5:
            return lambda: None
        return super().subscribe(call, posted)


class World:
    """A store, engines that come and go, and somebody who tells the runs things."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = RougherStore(self.chance)
        #: Runs that were asked to end and not retried since.
        self.canceled: set[str] = set()
        self.seen = self.store.seen

    def engine(self) -> Engine:
        return engine_on(
            self.store, PATIENT, brief, grace=self.chance.choice([0, 0.3]), poll=0.3,
            park_after=self.chance.choice([0, 0.5, 5]),
        )  # fmt: skip

    async def live(self) -> None:
        """One engine for a while, which ends in one of the ways there are."""
        engine = self.engine()
        try:
            await engine.__aenter__()
        except StoreError:
            return
        await asyncio.sleep(self.chance.uniform(0.05, 2))
        way = self.chance.random()
        if way < 0.3:
            self.store.crash(engine._shell.worker)
            await kill(engine)
        elif way < 0.5:
            await engine.__aexit__()
        elif way < 0.75:  # presumed dead, while it goes on working
            self.store.crash(engine._shell.worker)
            await self.live()
            await engine.__aexit__()
        else:  # nobody hears it any more, and its lease runs out
            self.store.deaf.add(engine._shell.worker)
            await asyncio.sleep(self.chance.uniform(0, 6))
            await self.live()
            await engine.__aexit__()

    async def tell(self, client: Client) -> None:
        """Now and then, tell some run something."""
        while True:
            await asyncio.sleep(self.chance.uniform(0, 0.3))
            id = f"r{self.chance.randrange(RUNS)}"
            handle = client.get(PATIENT, id)
            what = self.chance.random()
            try:
                if what < 0.6:
                    n = self.chance.randrange(WAITS)
                    await handle.signal("item", n, dedupe_key=f"item-{n}")
                elif what < 0.8:
                    await (handle.pause if what < 0.7 else handle.unpause)()
                elif what < 0.85 and id != "r0":
                    self.canceled.add(id)
                    await handle.cancel("by chance")
                elif id in self.canceled:
                    await handle.retry(failed=True)
                    self.canceled.discard(id)
            except (StoreError, NotFound, RunActive, RunFinished, InvalidRequest):
                continue  # the store was away, or the run is not in the state for it

    async def end(self) -> None:
        """Nothing goes wrong any more: every run ends, when it is told what it waits for."""
        self.store.rough = False
        self.store.deaf.clear()
        async with self.engine() as engine:
            for number in range(RUNS):
                handle = engine.get(PATIENT, f"r{number}")
                for n in range(WAITS):
                    with suppress(NotFound):
                        await handle.signal("item", n, dedupe_key=f"item-{n}")
                with suppress(NotFound, RunFinished):
                    await handle.signal("end", dedupe_key="end")
                    await handle.unpause()
            for number in range(RUNS):
                handle = engine.get(PATIENT, f"r{number}")
                try:
                    assert sorted(await handle.result(timeout="1d")) == list(range(WAITS))
                    self.seen["completed"] += 1
                except Canceled:
                    self.seen["canceled"] += 1
                    assert number, "nobody canceled it"
            assert engine._shell.live == {}


async def check(store: RougherStore, id: str, seen: Counter[str]) -> None:
    row = await store.describe("patient", id)
    rows = await rows_of(store, "patient", id)
    assert [r.seq for r in rows] == list(range(1, len(rows) + 1))
    reads = [r.read for r in rows]
    assert reads == sorted(reads)
    assert reads[-1] <= row.mail
    transitions = [t for r in rows for t in decode_row(r.body)]
    folded = fold(transitions)
    assert folded.status == row.status
    assert folded.active == 0
    assert [t.at for t in transitions] == sorted(t.at for t in transitions)
    assert row.owner is None
    actions = [action for t in transitions for action in t.actions]
    taken = [action.signal for action in actions if isinstance(action, ConsumeSignal)]
    kept = [action.signal for action in actions if isinstance(action, BufferSignal)]
    assert len(kept) == len(set(kept)), "a message was applied twice"
    assert len(taken) == len(set(taken)), "a signal was taken twice"
    seen.update(type(action).__name__ for action in actions)


@pytest.mark.rule("G-82", "D-3")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_to_its_engines_a_run_that_waits_hears_everything_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # scenarios 23, 47, 49, 60, 86, 93, 265, 267
    for module in (
        "perdure.engine.worker.beats",
        "perdure.engine.worker.shell",
        "perdure.stores.memory.store",
    ):
        monkeypatch.setattr(f"{module}.LEASE", LEASE)

    async def main() -> None:
        world = World(seed)
        async with client_on(world.store) as client:
            for number in range(RUNS):
                while True:
                    try:
                        await client.start(PATIENT, id=f"r{number}", if_exists="join")
                        break
                    except StoreError:
                        continue
            telling = asyncio.ensure_future(world.tell(client))
            for _ in range(world.chance.randint(2, 7)):
                await world.live()
            telling.cancel()
            await asyncio.wait([telling])
        await world.end()
        for number in range(RUNS):
            await check(world.store, f"r{number}", world.seen)
        SEEN.update(world.seen, seeds=1)

    run(main())


def test_what_happened_was_worth_it() -> None:
    """Runs last: chance must have brought about everything that the seeds are for."""
    if SEEN["seeds"] < 10:
        pytest.skip("too few seeds ran in this process to tell")
    wanted = ["completed", "canceled", "parked", "BufferSignal", "ConsumeSignal", "Claimed",
              "CancelTasks", "ReopenRun", "SetPaused", "Ignored", "ResolveWait"]  # fmt: skip
    assert [name for name in wanted if not SEEN[name]] == []
