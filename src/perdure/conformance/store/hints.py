"""Hints: who listens hears of what may be due or have mail, and nobody relies on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.capabilities import needs
from perdure.conformance.rows import commit, key, message, new, outcomes, row, start, worker
from perdure.stores.answers import Posted
from perdure.stores.port import Store
from perdure.stores.rows import NEVER, Finish, Message, Park, Release, Reopen

#: How long another process's write may take to be noticed, in seconds: far longer than it does.
_PATIENCE = 30.0


class Hints(StoreBed):
    """Cases about being told."""

    @scene
    @needs("notifications")
    async def test_whatever_makes_a_run_due_is_told_to_all_that_listen(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, *[new(n, owner="w1") for n in (1, 2, 3, 4)], new(6, owner="w9"))
        await commit(store, row(4, 2, change=Finish("completed", NEVER)))
        retried = await store.claim_finished("w1", "order", "run-4")
        again = Reopen("1", "h1", 5)
        await start(store, new(7, ready_at=5))
        [taken] = await store.claim_runs("w1", ["order"], 1)
        await store.post([message(7, "a", kind="cancel")])
        for change in (
            lambda: store.post([message(1, "a")]),
            lambda: start(store, new(5, ready_at=5)),
            lambda: commit(store, row(2, 2, change=Release(5))),
            lambda: store.park("w1", [Park(key(3), 0, 0, 5)]),
            lambda: commit(store, row(4, 3, epoch=retried.epoch, change=again)),
            lambda: store.give_back("w1", taken, "no code"),
            lambda: store.sweep("w1"),
            lambda: store.unregister("w1"),
        ):
            await self._heard(store, change)

    async def _heard(self, store: Store, change: Callable[[], Awaitable[object]]) -> None:
        first, second = asyncio.Event(), asyncio.Event()
        ends = [store.subscribe(first.set), store.subscribe(second.set)]
        await change()
        async with asyncio.timeout(_PATIENCE):
            await first.wait()
            await second.wait()
        for end in ends:
            end()

    @scene
    @needs("notifications")
    async def test_who_has_ended_his_subscription_is_not_called(self, store: Store) -> None:
        calls: list[str] = []
        end = store.subscribe(lambda: calls.append("ended"))
        heard = asyncio.Event()
        store.subscribe(heard.set)
        end()
        end()
        await outcomes(store, new(1, ready_at=5))
        async with asyncio.timeout(_PATIENCE):
            await heard.wait()
        assert calls == []

    @scene
    @needs("notifications")
    async def test_who_asks_for_it_is_told_what_was_posted_here_and_with_what_answer(
        self, store: Store
    ) -> None:
        await start(store, new(1, owner="w1"))
        told: list[tuple[list[Message], list[Posted]]] = []
        both = asyncio.Event()

        def posted(messages: Sequence[Message], answers: Sequence[Posted]) -> None:
            told.append((list(messages), list(answers)))
            if len(told) == 2:
                both.set()

        ended = store.subscribe(_nobody, lambda *_: told.append(([], [])))
        ended()
        store.subscribe(_nobody, posted)
        sent = [[message(1, "a"), message(9, "a")], [message(1, "a"), message(1, "b")]]
        answers = [list(await store.post(messages)) for messages in sent]
        async with asyncio.timeout(_PATIENCE):
            await both.wait()
        assert told == list(zip(sent, answers, strict=True))
        assert [one.n for batch in answers for one in batch] == [1, 0, 1, 2]

    @scene
    @needs("notifications")
    async def test_closing_the_store_ends_all_subscriptions(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        calls: list[str] = []
        store.subscribe(lambda: calls.append("told"), lambda *_: calls.append("posted"))
        again = await self.restarted(store)
        heard = asyncio.Event()
        again.subscribe(heard.set)
        await again.post([message(1, "a")])
        async with asyncio.timeout(_PATIENCE):
            await heard.wait()
        assert calls == []

    @scene
    @needs("notifications", "processes")
    async def test_other_stores_on_the_same_runs_hear_of_it(self, store: Store) -> None:
        # scenario 49
        heard = asyncio.Event()
        store.subscribe(heard.set)
        async with self.opened() as other:
            await start(other, new(1, owner="w1"))
            await other.post([message(1, "a")])
            async with asyncio.timeout(_PATIENCE):
                await heard.wait()


def _nobody() -> None:
    """Hints that nobody waits for."""
