"""Runs that go on as new: one run, one id, a short journal, nothing that was sent is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import Channel, Context, Failure, InvalidRequest, RunFailed, step, workflow
from perdure.kernel.actions import Continued
from perdure.stores.sqlite.store import SqliteStore
from tests.virtual.engines import engine_on, killed
from tests.virtual.stores import LateStore, VirtualStore
from tests.virtual.threads import run

news = Channel("news", Any)
done: list[Any] = []
STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
LARGE = "x" * 6000


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@step
async def bill(period: int) -> int:
    done.append(period)
    return period


@workflow(max_duration="1h")
async def monthly(ctx: Context, period: int) -> str:
    await bill(period)
    await ctx.sleep("50m")
    if period < 5:
        ctx.continue_as_new(period + 1)
    return f"over after {period}"


@workflow(max_duration=None)
async def inbox(ctx: Context, seen: list[Any]) -> list[Any]:
    """Takes one message a life."""
    seen.append(await ctx.receive(news))
    if len(seen) < 6:
        ctx.continue_as_new(seen)
    return [len(one) if isinstance(one, str) else one for one in seen]


async def first_rows(store: Any, name: str) -> list[Any]:
    """What the journal begins with."""
    loaded = await store.load((await store.describe(name, "1")).key)
    from perdure.codec.journal import decode_row

    assert loaded.journal[0].seq == loaded.run.base_seq
    return list(decode_row(loaded.journal[0].body)[0].actions)


@STORES
def test_the_journal_stays_short_and_the_deadline_begins_anew(kind: type[VirtualStore]) -> None:
    async def main() -> None:
        store = kind()
        async with engine_on(store, monthly, bill) as engine:
            assert await engine.run(monthly, 1, id="1") == "over after 5"
            row = await store.describe("monthly", "1")
            assert row.base_seq > 8
            assert [type(a) for a in await first_rows(store, "monthly")].count(Continued) == 1
            told = [record["do"] async for record in engine.get(monthly, "1").history()]
            assert len(told) < 14
            assert told[-1] == "FinishRun"
        assert done == [1, 2, 3, 4, 5]

    run(main())


@STORES
def test_the_deadline_of_the_last_life_is_kept_also_by_who_takes_the_run_over(
    kind: type[VirtualStore],
) -> None:
    @workflow(max_duration="1h")
    async def late(ctx: Context, life: int) -> None:
        await ctx.sleep("50m" if life == 1 else "2h")
        ctx.continue_as_new(life + 1)

    async def main() -> None:
        store = kind()
        async with killed(store, late) as first:
            await first.start(late, 1, id="1")
            await asyncio.sleep(55 * 60)
            deadline = (await store.describe("late", "1")).deadline
        async with engine_on(store, late) as engine:
            with pytest.raises(TimeoutError):
                await engine.get(late, "1").result()
            assert deadline is not None
            ended = await store.describe("late", "1")
            assert ended.finished is not None
            assert abs(ended.finished - deadline) < 2_000_000

    run(main())


@pytest.mark.parametrize("sent_after", [0.0, 0.0005, 0.003, 5.0, 60.0])
@STORES
def test_no_message_is_lost_however_the_lives_and_the_owners_change(
    kind: type[VirtualStore], sent_after: float
) -> None:
    # scenario 51
    values = [1, LARGE, None, 4, LARGE, 6]

    async def main() -> None:
        store = kind()
        async with killed(store, inbox) as first:
            started = await first.start(inbox, [], id="1")
            await asyncio.sleep(sent_after)
            for value in values[:4]:
                await started.signal(news, value)
            await asyncio.sleep(0.0025)
        async with killed(store, inbox) as second:
            await second.get(inbox, "1").signal(news, values[4])
            await asyncio.sleep(sent_after)
        async with engine_on(store, inbox) as engine:
            await engine.get(inbox, "1").signal(news, values[5])
            result = await engine.get(inbox, "1").result()
            assert result == [1, 6000, None, 4, 6000, 6]
            key = (await store.describe("inbox", "1")).key
            assert len(await store.mail(key, 0)) == 6

    run(main())


@STORES
def test_a_run_that_went_on_as_new_can_be_retried(kind: type[VirtualStore]) -> None:
    broken = [True]

    @step
    async def mended(life: int) -> int:
        if broken[0] and life == 3:
            raise Failure("not yet", kind="broken")
        done.append(life)
        return life

    @workflow(max_duration="1h")
    async def lives(ctx: Context, life: int) -> list[int]:
        await mended(life)
        await ctx.sleep(60)
        if life < 4:
            ctx.continue_as_new(life + 1)
        return [life]

    async def main() -> None:
        store = kind()
        async with engine_on(store, lives, mended) as engine:
            started = await engine.start(lives, 1, id="1")
            with pytest.raises(RunFailed):
                await started.result()
            broken[0] = False
            await started.retry(failed=True)
            assert await started.result() == [4]
            assert done == [1, 2, 3, 4]

    run(main())


def test_a_large_input_is_the_next_lifes_after_a_takeover() -> None:
    @workflow(max_duration=None)
    async def carries(ctx: Context, text: str) -> int:
        await ctx.receive(news)
        if len(text) < 20_000:
            ctx.continue_as_new(text + LARGE)
        return len(text)

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, carries) as engine:
            await engine.start(carries, LARGE, id="1")
        for value in range(3):
            async with killed(store, carries) as engine:
                await engine.get(carries, "1").signal(news, value)
                await asyncio.sleep(5)
        async with engine_on(store, carries) as engine:
            await engine.get(carries, "1").signal(news, 3)
            assert await engine.get(carries, "1").result() == 24_000

    run(main())


def test_old_rows_are_forgotten_by_the_purge_and_the_run_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db", synchronous="normal")
        async with engine_on(store, inbox) as engine:
            started = await engine.start(inbox, [], id="1")
            for _ in range(5):
                await started.signal(news, LARGE)
                await asyncio.sleep(0.1)
            assert store._database.writer is not None
            counted = "SELECT count(*), min(seq) FROM journal"
            before = await store._database.writer.call(lambda db: db.execute(counted).fetchone())
            assert await store.purge(10) == 0
            after = await store._database.writer.call(lambda db: db.execute(counted).fetchone())
            base = (await store.describe("inbox", "1")).base_seq
            assert before[1] == 1
            assert after[1] == base > 1
            await started.signal(news, 1)
            assert await started.result() == [6000] * 5 + [1]

    run(main())


@workflow(max_duration="1h")
async def careless(ctx: Context, period: int) -> str:
    wrong: list[Any] = [{"period": 2}, "two"]
    if period == 0:
        await bill(0)
        ctx.continue_as_new(wrong[0])
    try:
        ctx.continue_as_new(wrong[1])
    except InvalidRequest as error:
        await bill(period)
        return str(error)


@workflow(max_duration="1h")
async def alone(ctx: Context) -> None:
    await bill(1)
    ctx.continue_as_new(3)


@STORES
def test_an_input_that_the_function_does_not_take_is_refused_where_it_is_given(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with engine_on(store, careless, alone, bill) as engine:
            said = await engine.run(careless, 1, id="1")
            assert said == "input of workflow careless: Expected `int`, got `str`"
            with pytest.raises(RunFailed, match="Expected `int`, got `object`"):
                await engine.run(careless, 0, id="2")
            with pytest.raises(RunFailed, match="takes no input: leave it out"):
                await engine.run(alone, id="3")
            assert [type(a) for a in await first_rows(store, "careless")].count(Continued) == 0
        assert done == [1, 0, 1], "what came before stays recorded, and is not done again"

    run(main())


@STORES
def test_who_joins_a_run_that_went_on_as_new_is_not_warned_of_another_input(
    kind: type[VirtualStore], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with engine_on(kind(), inbox) as engine:
            joined = await engine.start(inbox, [], id="1")
            await engine.start(inbox, ["other"], id="1", if_exists="join")
            assert caplog.text.count("started with another input") == 1
            await joined.signal(news, "a")
            await asyncio.sleep(1)
            await engine.start(inbox, [], id="1", if_exists="join")
            assert caplog.text.count("started with another input") == 1

    run(main())
