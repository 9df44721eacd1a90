"""Steps whose functions got one more parameter, or one less, while runs that call them go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from perdure import Context, Signal, Step, step, workflow
from perdure.flow.codec import Codec
from tests.unit.flow.test_codec import Sealed
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

go = Signal("go", int)
done: list[Any] = []
LARGE = "x" * 5000
ORDERS: list[Any] = ["ann", 3, None, [], {"to": "ann"}, {"to": 1, "copy": 2}, {}, LARGE]


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@step(name="mail", retry=9)
async def one(to: Any) -> str:
    return await _mailed(to)


@step(name="mail", retry=9)
async def two(to: Any, copy: str = "nobody") -> str:
    return await _mailed(to, copy)


@step(name="mail", retry=9)
async def by_keyword(to: Any, *, copy: str = "nobody") -> str:
    return await _mailed(to, copy)


@step(name="mail", retry=9)
async def many(to: Any, /, *copies: str, **more: str) -> str:
    return await _mailed(to, *copies, *more)


async def _mailed(*given: Any) -> str:
    if given[0] == "slow":
        await asyncio.sleep(30)
    done.append(given)
    return f"{len(done)} mailed"


Mails = Callable[[Step[..., str]], Any]


def mails(mail: Step[..., str]) -> Any:
    @workflow(max_duration="9d", name="mails")
    async def made(ctx: Context, order: Any) -> list[str]:
        before = await mail(order)
        if order == "slow":
            return [before]
        await ctx.wait(go)
        return [before, await mail("end")]

    return made


async def _handed_over(
    before: Step[..., str], after: Step[..., str], order: Any, codec: Codec | None = None
) -> Any:
    store = VirtualStore()
    old, new = mails(before), mails(after)
    async with killed(store, old, codec=codec) as engine:
        await engine.start(old, order, id="1")
        await asyncio.sleep(1)
    async with engine_on(store, new, codec=codec) as engine:
        started = engine.get(new, "1")
        await started.signal(go, 1)
        await asyncio.sleep(1)
        assert (await started.describe()).stalled is None
        return await started.result()


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize(
    ("before", "after"),
    [(one, two), (two, one), (one, by_keyword), (by_keyword, one), (one, many), (many, one)],
)
def test_a_call_with_one_argument_is_the_same_call(
    before: Step[..., str], after: Step[..., str], order: Any
) -> None:
    assert run(_handed_over(before, after, order)) == ["1 mailed", "2 mailed"]
    assert [given[0] for given in done] == [order, "end"]


@pytest.mark.parametrize(("before", "after"), [(one, two), (two, one)])
def test_a_codec_of_one_s_own_changes_nothing_of_it(
    before: Step[..., str], after: Step[..., str]
) -> None:
    assert run(_handed_over(before, after, {"to": "ann"}, Sealed())) == ["1 mailed", "2 mailed"]


@pytest.mark.parametrize(("before", "after"), [(one, two), (two, one), (many, by_keyword)])
def test_an_attempt_under_way_is_made_again_with_the_argument_that_was_recorded(
    before: Step[..., str], after: Step[..., str]
) -> None:
    async def main() -> None:
        store = VirtualStore()
        old, new = mails(before), mails(after)
        async with killed(store, old) as engine:
            await engine.start(old, "slow", id="1")
            await asyncio.sleep(1)
        assert done == []
        async with engine_on(store, new) as engine:
            assert await engine.get(new, "1").result() == ["1 mailed"]
        assert done[0][0] == "slow"

    run(main())


def test_a_retry_after_the_change_calls_with_the_recorded_argument_too() -> None:
    async def main() -> None:
        store = VirtualStore()
        fails = step(name="mail", retry=9)(_refuses)
        async with killed(store, mails(fails)) as engine:
            await engine.start(mails(fails), {"to": "ann"}, id="1")
            await asyncio.sleep(0.5)
        async with engine_on(store, mails(two)) as engine:
            await engine.get("mails", "1").signal(go, 1)
            assert await engine.get("mails", "1").result() == ["1 mailed", "2 mailed"]
        assert done == [({"to": "ann"}, "nobody"), ("end", "nobody")]

    run(main())


async def _refuses(to: Any) -> str:
    raise OSError("not now")


def test_another_argument_is_another_call() -> None:
    async def main() -> str | None:
        store = VirtualStore()

        @workflow(max_duration="9d", name="mails")
        async def other(ctx: Context, order: Any) -> list[str]:
            return [await two(order, copy="nobody"), str(await ctx.wait(go))]

        async with killed(store, mails(one)) as engine:
            await engine.start(mails(one), "ann", id="1")
            await asyncio.sleep(1)
        async with engine_on(store, other) as engine:
            await asyncio.sleep(1)
            return (await engine.get(other, "1").describe()).stalled

    said = run(main())
    assert said is not None
    assert 'mail("ann") is recorded' in said
