"""Codecs of users: what a workflow records is theirs, what a graph records is plain."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Any

import pytest

from perdure import (
    Channel,
    Client,
    Codec,
    Context,
    Engine,
    Failure,
    Graph,
    InvalidRequest,
    NotFound,
    Signal,
    step,
    workflow,
)
from perdure.stores.memory import MemoryStore
from perdure.stores.port import RunQuery


@dataclass
class Card:
    number: str


class Sealed(Codec):
    """Sealed well enough for a test."""

    def encode(self, value: object, /) -> bytes:
        return b'"sealed:%s"' % base64.b64encode(super().encode(value)[::-1])

    def decode(self, data: bytes, type: Any, /) -> Any:
        if not data.startswith(b'"sealed:'):
            raise ValueError("not sealed")
        return super().decode(base64.b64decode(data[8:-1])[::-1], type)


class Broken(Codec):
    """Gives what is no JSON."""

    def encode(self, value: object, /) -> bytes:
        return b"<card/>"


paid = Signal("paid", Card)
SECRET = "4711-secret"


@step
async def charge(card: Card, note: str = "") -> Card:
    assert type(card) is Card
    return Card(f"{card.number}-{note}")


@step
async def plain(text: str) -> str:
    return text


@workflow(max_duration="1h")
async def inner(ctx: Context, card: Card) -> Card:
    return await charge(card, note="child")


@workflow(max_duration="1h")
async def pay(ctx: Context, card: Card) -> list[Card]:
    first = await charge(card, "step")
    second = await ctx.wait(paid)
    third = await ctx.child(inner, Card(SECRET))
    return [first, second, third]


@workflow(max_duration="1h")
async def again(ctx: Context, card: Card) -> Card:
    if card.number == SECRET:
        ctx.continue_as_new(Card("2"))
    return card


graph = Graph.load(
    {
        "name": "graph",
        "nodes": [
            {"id": "plain", "type": "TASK", "spec": {"step": "plain", "input": "{{input.text}}"}}
        ],
    }
)


async def recorded(store: MemoryStore) -> str:
    texts: list[bytes] = []
    for run in await store.find(RunQuery()):
        loaded = await store.load(run.key)
        texts += [row.body for row in loaded.journal]
        texts += [mail.body or b"" for mail in await store.mail(run.key, 0)]
        texts.append(run.output or b"")
    return b"\n".join(texts).decode()


@pytest.mark.rule("W-44", "W-46")
def test_all_that_a_workflow_records_is_the_codec_s() -> None:
    async def play() -> None:
        store = MemoryStore()
        async with Engine(store, [pay, inner], codec=Sealed()) as engine:
            await engine.start(pay, Card(SECRET), id="1")
        async with Engine(store, [pay, inner], codec=Sealed()) as engine:
            run = engine.get(pay, "1")
            await run.signal(paid, Card(SECRET))
            ends = [Card(f"{SECRET}-step"), Card(SECRET), Card(f"{SECRET}-child")]
            assert await run.result(timeout=20) == ends
            assert await engine.run(again, Card(SECRET)) == Card("2")
            assert SECRET not in await recorded(store)

    asyncio.run(play())


@pytest.mark.rule("D-27")
def test_graphs_of_the_same_engine_stay_plain() -> None:
    async def play() -> None:
        store = MemoryStore()
        async with Engine(store, [graph, plain], codec=Sealed()) as engine:
            assert await engine.run(graph, {"text": SECRET}) == {"plain": SECRET}
            assert SECRET in await recorded(store)

    asyncio.run(play())


def test_a_value_that_does_not_fit_is_refused_before_it_is_sealed_away() -> None:
    async def play() -> None:
        store = MemoryStore()
        async with Client(store, codec=Sealed()) as client:
            with pytest.raises(InvalidRequest, match=r"input of workflow pay.*`\$\.number`"):
                await client.start(pay, {"number": 3}, id="1")  # type: ignore[misc]
            run = await client.start(pay, Card("1"), id="1")
            wrong: Any = {"number": 3}
            with pytest.raises(InvalidRequest, match="signal paid"):
                await run.signal(paid, wrong)
            assert len(await store.mail((await run._row()).key, 0)) == 0

    asyncio.run(play())


@pytest.mark.rule("W-44")
def test_a_codec_that_gives_no_json_is_refused_with_nothing_written() -> None:
    async def play() -> None:
        async with Client(MemoryStore(), codec=Broken()) as client:
            with pytest.raises(InvalidRequest, match="the codec gave no JSON"):
                await client.start(pay, Card("1"), id="1")
            with pytest.raises(NotFound):
                await client.get(pay, "1").status()

    asyncio.run(play())


maybe = Signal("maybe", Card | None)


@workflow(max_duration=None)
async def lives(ctx: Context, number: int | None = 7) -> list[Any]:
    """Begun three times: with nothing, with null, with a number; each tells what it got."""
    seen = await ctx.receive(told)
    seen.append(number)
    if len(seen) == 1:
        await ctx.receive(told)
        ctx.continue_as_new(None)
    return [*seen, await ctx.wait(maybe), await ctx.wait(maybe)]


told = Channel("told", list[Any])


@pytest.mark.rule("W-45")
@pytest.mark.parametrize("codec", [None, Sealed()])
def test_what_is_not_given_is_the_default_and_null_is_a_value(codec: Codec | None) -> None:
    async def play() -> None:
        async with Engine(MemoryStore(), [lives], codec=codec) as engine:
            run = await engine.start(lives, id="1")
            for seen in ([], ["go on"], [7]):
                await run.signal(told, seen)
            await run.signal(maybe, None)
            assert await run.result(timeout=20) == [7, None, None, None]

    asyncio.run(play())


@pytest.mark.rule("D-27", "W-45")
@pytest.mark.parametrize("codec", [None, Sealed()])
@pytest.mark.parametrize("value", [{"v": None}, {"v": {"v": 1}}, {}, [], "", 0, False])
def test_what_looks_like_something_else_stays_what_it_is(value: Any, codec: Codec | None) -> None:
    async def play() -> None:
        async with Engine(MemoryStore(), [echo], codec=codec) as engine:
            got = await engine.run(echo, value)
            assert got == [value, value]
            assert type(got[1]) is type(value)

    asyncio.run(play())


@workflow(max_duration=None)
async def echo(ctx: Context, value: Any) -> list[Any]:
    return [value, await same(value)]


@step
async def same(value: Any) -> Any:
    return value


def test_whoever_has_another_codec_is_told_and_loses_nothing() -> None:
    async def play() -> None:
        store = MemoryStore()
        async with Client(store) as client:
            await client.start(inner, Card("1"), id="plain")
        async with Engine(store, [inner], codec=Sealed()) as engine:
            with pytest.raises(Failure, match="the codec cannot read it: ValueError: not sealed"):
                await engine.get(inner, "plain").result(timeout=20)
            await engine.run(inner, Card("1"), id="sealed")
        async with Client(store) as client:
            with pytest.raises(InvalidRequest, match="output of workflow inner: Expected"):
                await client.get(inner, "sealed").result(timeout=20)
        async with Client(store, codec=Sealed()) as client:
            assert await client.get(inner, "sealed").result(timeout=20) == Card("1-child")

    asyncio.run(play())


def test_the_default_reads_and_writes_json() -> None:
    class Default(Codec): ...

    codec = Default()
    assert codec.encode(Card("1")) == b'{"number":"1"}'
    assert codec.decode(b'{"number":"1"}', Card) == Card("1")
    assert codec.decode(b"[1]", Any) == [1]
    with pytest.raises(InvalidRequest, match=r"`\$\.number`"):
        codec.decode(b'{"number":1}', Card)
