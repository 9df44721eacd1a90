"""A worker is stopped between deciding and recording, for longer than its lease: others take its
run, and when it goes on, what it held is refused for ever.

Every moment is exact: the worker stops itself as it hands the row to the store, and it is let go on
when the one that took over has come to the point that the test is about.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from perdure import Client, Run
from perdure.stores.answers import LoadedRun
from tests.chaos.post import Place, Post, actions, place, started, stored, until

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

Told = Callable[[Place, Client], Awaitable[None]]


def tell(folder: Path, story: Told) -> None:
    """A client that stays open for the whole story; leases are shorter where workers run."""

    async def main(at: Place) -> None:
        async with Client(f"sqlite:///{at.db}") as client:
            await story(at, client)

    with place(folder) as at:
        asyncio.run(main(at))


async def ended(run: Run[Any]) -> Any:
    async with asyncio.timeout(60):
        return await run.result()


def check(loaded: LoadedRun, silent: str, before: int) -> None:
    """Nothing is recorded twice, and nothing by `silent` from row `before` on."""
    assert [row.seq for row in loaded.journal] == list(range(1, len(loaded.journal) + 1))
    assert [row.seq for row in loaded.journal if row.writer == silent and row.seq >= before] == []
    ends = ("CompleteTask", "FailTask", "RetryTask", "ResolveWait", "ConsumeSignal", "FinishRun")
    named = [
        (type(action).__name__, getattr(action, "node", ""), getattr(action, "attempt", 0))
        for _, action in actions(loaded)
        if type(action).__name__ in ends
    ]
    assert [one for one, times in Counter(named).items() if times > 1] == []
    assert loaded.mail == []
    assert [row.read for row in loaded.journal] == sorted(row.read for row in loaded.journal)
    assert loaded.journal[-1].read == loaded.run.mail == 1


def writer_of(loaded: LoadedRun, kind: str, node: str) -> list[str]:
    """Who recorded it."""
    return [
        writer
        for writer, action in actions(loaded)
        if (type(action).__name__, getattr(action, "node", "")) == (kind, node)
    ]


def taken_over(loaded: LoadedRun) -> list[int]:
    """The numbers of the rows that moved the fence."""
    return [row.seq for row in loaded.journal if b'"Claimed"' in row.body]


@pytest.mark.rule("G-35", "G-100")
@pytest.mark.parametrize("node", ["first", "second"])
def test_an_outcome_that_was_held_over_a_takeover_is_never_recorded(
    tmp_path: Path, node: str
) -> None:
    # scenarios 84, 93: the one that took over is still at the same step, and has recorded nothing
    async def story(at: Place, client: Client) -> None:
        late = at.launch(hold=f"CompleteTask {node}")
        run = await started(client, "r1")
        await asyncio.to_thread(late.is_held)
        other = at.launch(gated=True)
        await asyncio.to_thread(at.until_executed, 1, node)
        assert await asyncio.to_thread(late.goes_on) == "refused, 0 in hand"
        at.gate.touch()
        output = await ended(run)
        assert output["told"] == {"by": "r1"}
        assert (output["first"], output["second"]) == ((1, 1) if node == "first" else (0, 1))
        loaded = await stored(client, "r1")
        [fence] = taken_over(loaded)
        check(loaded, late.id, fence)
        assert writer_of(loaded, "CompleteTask", node) == [other.id]
        both = [(0, "first", 0), (1, "first", 0), (1, "second", 0)]
        once = [(0, "first", 0), (0, "second", 0), (1, "second", 0)]
        assert at.executions() == (both if node == "first" else once)
        await serves_again(at, client, late, other)

    tell(tmp_path, story)


async def serves_again(at: Place, client: Client, late: Post, other: Post) -> None:
    """The one that came too late works on, under another name."""
    other.ends()
    run = await started(client, "r2")
    assert await ended(run) == {"told": {"by": "r2"}, "first": 0, "second": 0}
    loaded = await stored(client, "r2")
    assert late.id not in {row.writer for row in loaded.journal}
    assert at.executions()[-2:] == [(0, "first", 0), (0, "second", 0)]


@pytest.mark.rule("G-100")
@pytest.mark.parametrize("node", ["first", "second"])
def test_an_outcome_that_was_held_until_others_ended_the_run_changes_nothing(
    tmp_path: Path, node: str
) -> None:
    # scenarios 85, 93
    async def story(at: Place, client: Client) -> None:
        late = at.launch(hold=f"CompleteTask {node}")
        run = await started(client, "r1")
        await asyncio.to_thread(late.is_held)
        at.launch()
        output = await ended(run)
        before = await stored(client, "r1")
        assert await asyncio.to_thread(late.goes_on) == "refused, 0 in hand"
        assert await ended(run) == output
        after = await stored(client, "r1")
        assert after == before
        check(after, late.id, taken_over(after)[0])

    tell(tmp_path, story)


def test_a_signal_that_was_held_over_a_takeover_is_read_once(tmp_path: Path) -> None:
    # scenarios 47, 93: the fence is moved by one who takes no runs, so that nobody has read it yet
    async def story(at: Place, client: Client) -> None:
        late = at.launch(hold="ResolveWait go")
        run = await started(client, "r1")
        await asyncio.to_thread(late.is_held)
        at.launch(serves=False)
        await asyncio.to_thread(until, lambda: at.owner("r1") is None)
        assert await asyncio.to_thread(late.goes_on) == "refused, 0 in hand"
        assert await ended(run) == {"told": {"by": "r1"}, "first": 0, "second": 0}
        loaded = await stored(client, "r1")
        [fence] = taken_over(loaded)
        check(loaded, late.id, fence)

    tell(tmp_path, story)


def test_a_run_that_others_took_is_not_let_go_by_the_one_that_was_about_to(tmp_path: Path) -> None:
    # scenarios 84, 93: letting go writes no row, so here the owner and the epoch are the fence
    async def story(at: Place, client: Client) -> None:
        late = at.launch(hold="park", park_after=0.1)
        run = await started(client, "r1", told=False)
        await asyncio.to_thread(late.is_held)
        other = at.launch()
        await asyncio.to_thread(until, lambda: at.owner("r1") == other.id)
        assert await asyncio.to_thread(late.goes_on) == "parked [False]"
        assert at.owner("r1") == other.id
        await run.signal("go", {"by": "r1"})
        assert await ended(run) == {"told": {"by": "r1"}, "first": 1, "second": 1}
        loaded = await stored(client, "r1")
        check(loaded, late.id, taken_over(loaded)[0])

    tell(tmp_path, story)


def test_an_outcome_held_past_the_lease_that_nobody_took_over_is_recorded(tmp_path: Path) -> None:
    # A lease says when others may come, not what is right: nothing is done again without need.
    async def story(at: Place, client: Client) -> None:
        late = at.launch(hold="CompleteTask first")
        run = await started(client, "r1")
        await asyncio.to_thread(late.is_held)
        await asyncio.sleep(at.lease + 0.5)
        assert await asyncio.to_thread(late.goes_on) == "accepted, 1 in hand"
        assert await ended(run) == {"told": {"by": "r1"}, "first": 0, "second": 0}
        assert at.executions() == [(0, "first", 0), (0, "second", 0)]
        loaded = await stored(client, "r1")
        assert taken_over(loaded) == []
        assert {row.writer for row in loaded.journal[1:]} == {late.id}

    tell(tmp_path, story)
