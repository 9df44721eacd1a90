"""The rows of steps that begin in the decision they follow from: none begins before its own is
taken, whatever the store answers, and others have their turn."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from perdure import current_step, workflow
from perdure.codec import journal
from perdure.engine.runs import writing
from perdure.flow.context import Context
from perdure.flow.signal import Channel
from perdure.kernel.onward import Onward
from perdure.stores.answers import CommitDone
from perdure.stores.rows import JournalRow
from tests.unit.engine.runs.chain import at_once, begun, blocks, chain, deeds, watch, work
from tests.virtual.engines import engine_on
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore, down

NEWS = Channel("news", int)


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    watch(monkeypatch)
    yield
    deeds.clear()  # they refer to engines and runs


# ------------------------------------------------------------------------------------- the store


class Answering(VirtualStore):
    """Answers to batches, by their places; all others it writes at once."""

    def __init__(self, answers: dict[int, Callable[[Callable[[], None], CommitDone, int], None]]):
        super().__init__()
        self.answers = answers
        self.count = 0

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        self.count += 1
        answer = self.answers.get(self.count)
        if answer is None:
            super().commit(rows, done)
        else:
            answer(lambda: super(Answering, self).commit(rows, done), done, len(rows))


def _late(write: Callable[[], None], done: CommitDone, count: int) -> None:
    asyncio.get_running_loop().call_later(5, write)


def _busy(write: Callable[[], None], done: CommitDone, count: int) -> None:
    done(["busy"] * count)


def _away(write: Callable[[], None], done: CommitDone, count: int) -> None:
    done(down()[0])


def _raises(write: Callable[[], None], done: CommitDone, count: int) -> None:
    raise down()[0]


@pytest.mark.rule("G-99")
@pytest.mark.parametrize("answer", [_late, _busy, _away, _raises])
def test_no_step_begins_before_its_row_is_taken(answer: Any) -> None:
    async def main() -> None:
        store = Answering({2: answer, 5: answer})
        async with engine_on(store, chain, work) as engine:
            started = await engine.start(chain, 6, id="1")
            await settle()
            assert begun == [0, 1]  # the row of the third is not taken
            assert await started.result() == 15
        assert begun == list(range(6))
        assert (await store.actions("chain", "1")).count("CompleteTask work#2") == 1
        assert at_once == {"completed": 3}

    run(main())


def test_a_run_that_somebody_else_has_taken_makes_no_further_step() -> None:
    def refuse(write: Callable[[], None], done: CommitDone, count: int) -> None:
        done(["refused"] * count)

    ends: list[str] = []

    @workflow(max_duration=None)
    async def ending(ctx: Context) -> None:
        try:
            for number in range(6):
                await work(number)
        finally:
            ends.append("let go")

    async def main() -> None:
        store = Answering({3: refuse})
        async with engine_on(store, ending, work, grace=0) as engine:
            await engine.start(ending, id="1")
            await settle()
            assert (begun, ends) == ([0, 1, 2], ["let go"])
            assert not engine._shell.live
        assert store.count == 3
        assert at_once == {"completed": 2}

    run(main())


def test_a_row_that_cannot_be_written_stalls_the_run_and_its_step_is_not_made(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def encode(made: Onward) -> Any:
        if made.next == "work#4":
            raise ValueError("such a row cannot be")
        return journal.encode_onward(made)

    monkeypatch.setattr(writing, "encode_onward", encode)

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, chain, work) as engine:
            started = await engine.start(chain, 6, id="1")
            await settle()
            stalled = (await started.describe()).stalled
            assert stalled is not None
            assert "such a row cannot be" in stalled
            assert not engine._shell.live
            assert begun == [0, 1, 2]
            assert (await store.actions("chain", "1"))[-1] == "DispatchTask work#3"
        assert at_once == {"completed": 2}

    run(main())
    assert caplog.text.count("such a row cannot be") >= 1


# ---------------------------------------------------------------------------------- others' turns


def test_after_so_many_steps_others_have_the_loop() -> None:
    async def main() -> None:
        turns: list[int] = []
        async with engine_on(VirtualStore(), chain, work) as engine:
            started = await engine.start(chain, 200, id="1")
            while len(begun) < 200:
                await asyncio.sleep(0)
                if len(begun) != sum(turns):
                    turns.append(len(begun) - sum(turns))
            await started.result()
        assert turns == [64, 64, 64, 8]
        assert at_once == {"completed": 196, False: 3}

    run(main())


def test_after_so_much_time_others_have_the_loop() -> None:
    async def main() -> None:
        turns: list[int] = []
        deeds.update(dict.fromkeys(range(9), blocks(0.002)))
        async with engine_on(VirtualStore(), chain, work) as engine:
            started = await engine.start(chain, 9, id="1")
            while len(begun) < 9:
                await asyncio.sleep(0)
                if len(begun) != sum(turns):
                    turns.append(len(begun) - sum(turns))
            await started.result()
        assert turns == [3, 3, 3]

    run(main())


@pytest.mark.parametrize("number", [62, 63, 64, 65])
@pytest.mark.parametrize("does", ["waits", "fails", "signals", "cancels its task"])
def test_a_step_that_goes_on_otherwise_at_the_end_of_a_turn_is_not_lost(
    number: int, does: str
) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), chain, work) as engine:

            async def deed() -> None:
                if current_step().attempt > 1:
                    return
                if does == "waits":
                    await asyncio.sleep(1)
                elif does == "fails":
                    raise ValueError("not yet")
                elif does == "signals":
                    await engine.get(chain, "1").signal(NEWS, 1)
                else:
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()

            deeds[number] = deed
            async with asyncio.timeout(60):
                assert await engine.run(chain, 70, id="1") == sum(range(70))
        assert begun.count(number) == 1 + (does == "fails")
        assert set(begun) == set(range(70))
        assert number == 64 or at_once[True] == 1

    run(main())


def test_what_a_late_store_has_taken_goes_on_as_always() -> None:
    """The row is under way when the turn ends: what follows from it follows from its answer."""

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, chain, work) as engine:
            assert await engine.run(chain, 9, id="1") == 36
        assert [len(batch) for batch in store.sent] == [1] * 9
        assert not at_once

    run(main())


# ------------------------------------------------------------------------------ code that is stuck


def test_code_that_is_stuck_after_such_steps_writes_nothing_earlier_than_they_did() -> None:
    @workflow(max_duration=None)
    async def hot(ctx: Context) -> None:
        for number in range(3):
            await work(number)
        for _ in itertools.count():
            await asyncio.sleep(0)

    async def main() -> None:
        store = VirtualStore()
        deeds.update(dict.fromkeys(range(3), blocks(0.001)))
        async with engine_on(store, hot, work) as engine:
            started = await engine.start(hot, id="1")
            await settle()
            assert (await started.describe()).stalled is not None
            key = (await store.describe("hot", "1")).key
            times = [row.at for row in (await store.load(key)).journal]
            assert times == sorted(times)
            assert at_once == {"completed": 2}

    run(main())
