"""Many at a time, in a known order: map over items, and whoever of several ends first.

asyncio's own `wait` and `as_completed` put what they are given into sets; these keep the order of
the arguments, so that nothing depends on where an object lies in memory (scenario 1).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from perdure.model.errors import Failure, InvalidOptions, InvalidRequest

T = TypeVar("T")
R = TypeVar("R")


async def map_items(
    fn: Callable[[T], Awaitable[R]], items: Iterable[T], concurrency: int, *, collect: bool
) -> list[Any]:
    """`fn` of every item, at most `concurrency` at a time; results in the order of the items.

    A failure cancels the rest and is raised, or, collecting, stands in its item's place. Tasks
    are as many as may run at a time, however many items there are.
    """
    if concurrency < 1:
        raise InvalidOptions(f"concurrency {concurrency!r}: use a whole number from 1")
    todo = list(items)
    results: list[Any] = [None] * len(todo)
    numbers = iter(range(len(todo)))

    async def work() -> None:
        for number in numbers:
            try:
                results[number] = await fn(todo[number])
            except Failure as failure:
                if not collect:
                    raise
                results[number] = failure

    workers = [asyncio.ensure_future(work()) for _ in range(min(concurrency, len(todo)))]
    try:
        await asyncio.gather(*workers)
    except BaseException:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        raise
    return results


async def completed(awaitables: Iterable[Awaitable[T]]) -> AsyncIterator[T]:
    """Outcomes as they come; those that are there together in the order of the arguments."""
    pending = [asyncio.ensure_future(_awaited(one)) for one in awaitables]
    try:
        while pending:
            await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            done = [task for task in pending if task.done()]
            pending = [task for task in pending if not task.done()]
            for task in done:
                yield task.result()
    finally:
        for task in pending:
            task.cancel()


async def any_of(awaitables: Iterable[Awaitable[T]]) -> tuple[int, T]:
    """The first outcome, with the place of its argument; the others are cancelled."""
    tasks = [asyncio.ensure_future(_awaited(one)) for one in awaitables]
    if not tasks:
        raise InvalidRequest("wait_any needs something to wait for: give it at least one")
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            if not task.done():
                task.cancel()
    place = next(index for index, task in enumerate(tasks) if task.done() and not task.cancelled())
    return place, tasks[place].result()


def _awaited(one: Awaitable[T]) -> Coroutine[Any, Any, T] | asyncio.Future[T]:
    if asyncio.isfuture(one) or asyncio.iscoroutine(one):
        return one

    async def wait() -> T:
        return await one

    return wait()
