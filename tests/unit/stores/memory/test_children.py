"""Children: a run that is forgotten leaves nothing behind, and is found without a walk."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.conformance.rows import commit, key, new, row, start
from perdure.conformance.store.calls import asked
from perdure.stores.memory.children import Name
from perdure.stores.memory.store import MemoryStore
from perdure.testing.virtual import run


class NeverWalked(dict[str, Name]):
    """The calls that wait; asked for one by one."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a walk over all that waits")

    items = keys = values = __iter__  # type: ignore[assignment]


def test_a_run_that_is_forgotten_waits_for_nobody_and_the_others_are_not_looked_at() -> None:
    async def main() -> None:
        store = MemoryStore()
        await start(store, *[new(n, owner="w1") for n in range(1, 9)], new(99))
        for n in range(1, 9):
            calls = (asked(f"a{n}", 99), asked(f"b{n}", 98))
            await commit(store, row(n, 2, outgoing=calls))
        children = store._children
        children._names = NeverWalked(children._names)
        for n in range(1, 9):
            assert len(children._names) == 2 * (9 - n)
            children.forget(key(n))
        assert not children._names
        assert children._waiting == children._tasks == {}

    run(main())
