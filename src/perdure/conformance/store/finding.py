"""Finding runs: newest first, page by page, without gaps or repeats."""

from __future__ import annotations

from itertools import product
from typing import Any

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.rows import BORN, commit, key, new, number, row, start
from perdure.model.status import RunStatus
from perdure.stores.port import RunQuery, Store
from perdure.stores.rows import NEVER, Finish

STATUSES: tuple[RunStatus, ...] = ("running", "completed", "failed", "canceled")


async def populate(store: Store, count: int) -> None:
    """Runs of two definitions in all statuses, three to each moment of birth."""
    runs = [new(n, definition="ab"[n % 2], owner="w1", created=BORN + n // 3) for n in range(count)]
    await start(store, *runs)
    for n in range(count):
        status = STATUSES[n % 4]
        if status != "running":
            await commit(store, row(n, 2, change=Finish(status, NEVER - 1)))


async def paged(store: Store, size: int, **query: Any) -> list[int]:
    """The numbers of all runs found, page by page."""
    found: list[bytes] = []
    while True:
        before = found[-1] if found else None
        page = await store.find(RunQuery(limit=size, before=before, **query))
        assert len(page) <= size
        if not page:
            return [number(k) for k in found]
        found += [run.key for run in page]


class Finding(StoreBed):
    """Cases about listing runs."""

    @scene
    async def test_pages_together_are_everything_newest_first(self, store: Store) -> None:
        await populate(store, 40)
        for size in (1, 4, 7, 100):
            assert await paged(store, size) == list(range(39, -1, -1))
            assert await paged(store, size, definition="a") == list(range(38, -1, -2))

    @scene
    async def test_filters_combine(self, store: Store) -> None:
        await populate(store, 30)
        some: tuple[tuple[RunStatus, ...], ...] = ((), ("failed",), ("running", "failed"), STATUSES)
        for definition, status in product((None, "a", "b", "c"), some):
            expected = [
                n
                for n in range(29, -1, -1)
                if definition in {None, "ab"[n % 2]} and (not status or STATUSES[n % 4] in status)
            ]
            assert await paged(store, 3, definition=definition, status=status) == expected

    @scene
    async def test_created_after_leaves_out_its_own_moment(self, store: Store) -> None:
        await populate(store, 12)
        assert await paged(store, 5, created_after=BORN + 2) == [11, 10, 9]
        assert await paged(store, 5, created_after=BORN + 3) == []
        assert len(await paged(store, 5, created_after=0)) == 12

    @scene
    async def test_a_page_after_a_run_that_is_gone_goes_on_from_its_birth(
        self, store: Store
    ) -> None:
        runs = [new(n, created=BORN + n * 1000) for n in range(5)]
        await start(store, *[run for n, run in enumerate(runs) if n != 3])
        page = await store.find(RunQuery(before=key(3)))
        assert [run.key for run in page] == [key(2), key(1), key(0)]

    @scene
    async def test_a_limit_of_nothing_finds_nothing(self, store: Store) -> None:
        await populate(store, 3)
        assert await store.find(RunQuery(limit=0)) == []
        assert await store.find(RunQuery(limit=-1)) == []

    @scene
    async def test_what_is_found_is_what_is_loaded(self, store: Store) -> None:
        await populate(store, 8)
        for run in await store.find(RunQuery()):
            assert run == (await store.load(run.key)).run
            assert run == await store.describe(run.definition, run.id)
