"""Where a store lies while it is examined: how one is made, how time passes for it, how a worker
of it dies. And how a case becomes a plain function that any runner can call."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from perdure.conformance.capabilities import Capabilities, refuses
from perdure.conformance.gaps import gap_of
from perdure.stores.port import Store

Suite = TypeVar("Suite", bound="StoreBed")


class StoreBed:
    """What the author of a store provides."""

    def begin(self) -> None:
        """Called before each case: from now on `make` gives stores on one new, empty place."""

    def end(self) -> None:
        """Called after each case, when every store is closed."""

    def make(self) -> Store:
        """A store on this case's place, not open yet. Called again, it is another process's store
        on the same runs; only one whose runs live in the object gives the object again."""
        raise NotImplementedError

    def kill(self, store: Store, worker: str) -> None:
        """Let a worker registered with this store be dead, as if its process had been killed."""
        raise NotImplementedError

    def capabilities(self) -> Capabilities:
        """What the store lacks, and why. Here: nothing. What is said to be lacking is not left out:
        the store has to refuse it, with Unsupported and before any effect."""
        return Capabilities()

    def advance(self, store: Store, microseconds: int) -> None:
        """Let the store's clock go on. Here: for stores that ask their own `now` for the time, and
        let it be replaced."""
        now = store.now
        setattr(store, "now", lambda: now() + microseconds)  # noqa: B010  # a method of a protocol

    # ------------------------------------------------------------------------------- for cases

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        """One more store on this case's runs."""
        store = self.make()
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def restarted(self, store: Store) -> Store:
        """The case's store after its process has ended and another has begun."""
        await store.close()
        self._store = self.make()
        await self._store.open()
        return self._store

    async def _play(self, case: Callable[[Any, Store], Awaitable[None]]) -> None:
        self._store = self.make()
        await self._store.open()
        try:
            gap = gap_of(self, case)
            if gap is None:
                await case(self, self._store)
            else:
                await refuses(gap[0], self, self._store)
        finally:
            await self._store.close()


def scene(case: Callable[[Suite, Store], Awaitable[None]]) -> Callable[[Suite], None]:
    """A case, told as a coroutine that is given an open store, as a function without arguments."""

    def test(self: Suite) -> None:
        self.begin()
        try:
            asyncio.run(self._play(case))
        finally:
            self.end()

    # Not functools.wraps: test runners would look through it and miss the store.
    test.__name__ = getattr(case, "__name__", "test")
    test.__qualname__ = getattr(case, "__qualname__", "test")
    test.__doc__ = case.__doc__
    test.__module__ = case.__module__
    setattr(test, "needs", getattr(case, "needs", ()))  # noqa: B010  # for `gap_of`
    return test


def long_scene(case: Callable[[Suite, Store], Awaitable[None]]) -> Callable[[Suite], None]:
    """A case that takes more than a second."""
    test = scene(case)
    setattr(test, "slow", True)  # noqa: B010  # functions have no declared attributes
    return test


@contextmanager
def refused(kind: type[Exception], text: str = "") -> Iterator[None]:
    """What happens inside raises this kind of error, whose message has this in it (a pattern)."""
    said = None
    try:
        yield
    except kind as error:
        said = str(error)
    assert said is not None, f"{kind.__name__} was not raised"
    assert re.search(text, said), f"{text!r} is not in {said!r}"
