"""Finding runs: newest first, page by page, without gaps or repeats."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.model.status import RunStatus
from perdure.stores.port import NEVER, Finish, RunQuery, Store
from tests.conformance.store.kit import BORN, Case, commit, key, new, play, row, start

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
            return [int.from_bytes(k[10:], "big") for k in found]
        found += [run.key for run in page]


@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_pages_together_are_everything_newest_first(case: Case, size: int) -> None:
    async def scene(store: Store) -> None:
        await populate(store, 40)
        assert await paged(store, size) == list(range(39, -1, -1))
        assert await paged(store, size, definition="a") == list(range(38, -1, -2))

    play(case, scene)


@pytest.mark.parametrize("definition", [None, "a", "b", "c"])
@pytest.mark.parametrize("status", [(), ("failed",), ("running", "failed"), STATUSES])
def test_filters_combine(case: Case, definition: str | None, status: tuple[RunStatus, ...]) -> None:
    async def scene(store: Store) -> None:
        await populate(store, 30)
        expected = [
            n
            for n in range(29, -1, -1)
            if definition in {None, "ab"[n % 2]} and (not status or STATUSES[n % 4] in status)
        ]
        assert await paged(store, 3, definition=definition, status=status) == expected

    play(case, scene)


def test_created_after_leaves_out_its_own_moment(case: Case) -> None:
    async def scene(store: Store) -> None:
        await populate(store, 12)
        assert await paged(store, 5, created_after=BORN + 2) == [11, 10, 9]
        assert await paged(store, 5, created_after=BORN + 3) == []
        assert len(await paged(store, 5, created_after=0)) == 12

    play(case, scene)


def test_a_page_after_a_run_that_is_gone_goes_on_from_its_birth(case: Case) -> None:
    async def scene(store: Store) -> None:
        runs = [new(n, created=BORN + n * 1000) for n in range(5)]
        await start(store, *[run for n, run in enumerate(runs) if n != 3])
        page = await store.find(RunQuery(before=key(3)))
        assert [run.key for run in page] == [key(2), key(1), key(0)]

    play(case, scene)


def test_a_limit_of_nothing_finds_nothing(case: Case) -> None:
    async def scene(store: Store) -> None:
        await populate(store, 3)
        assert await store.find(RunQuery(limit=0)) == []
        assert await store.find(RunQuery(limit=-1)) == []

    play(case, scene)


def test_what_is_found_is_what_is_loaded(case: Case) -> None:
    async def scene(store: Store) -> None:
        await populate(store, 8)
        for run in await store.find(RunQuery()):
            assert run == (await store.load(run.key)).run
            assert run == await store.describe(run.definition, run.id)

    play(case, scene)
