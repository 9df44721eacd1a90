"""Overdue: many runs are found with one walk, and none that somebody wants again."""

from __future__ import annotations

from collections.abc import ItemsView

from perdure.conformance.rows import commit, key, new, row, start
from perdure.stores.memory.overdue import Overdue
from perdure.stores.memory.run import MemoryRun
from perdure.stores.memory.store import MemoryStore
from perdure.stores.port import PURGE_AFTER
from perdure.stores.rows import Finish
from perdure.testing.virtual import run

LATE = 10 * PURGE_AFTER


class Walked(dict[bytes, MemoryRun]):
    """Runs that count how often all of them are walked over."""

    walks = 0

    def items(self) -> ItemsView[bytes, MemoryRun]:
        self.walks += 1
        return super().items()


def ended(count: int) -> Walked:
    runs = Walked()
    for n in range(count):
        runs[key(n)] = one = MemoryRun(new(n))
        one.change(row(n, 2, at=0, change=Finish("completed", count - n)))
    return runs


def test_many_are_found_in_order_with_one_walk_and_one_that_finds_no_more() -> None:
    runs = ended(1000)
    overdue, gone = Overdue(runs), []
    while (one := overdue.first(LATE)) is not None:
        del runs[one]
        gone.append(one)
    assert gone == [key(n) for n in reversed(range(1000))]
    assert runs.walks == 2


def test_what_is_wanted_again_or_gone_since_the_walk_stays_out() -> None:
    runs = ended(4)
    overdue = Overdue(runs)
    del runs[overdue.first(LATE) or b""]
    runs[key(2)].owner = "w1"
    runs[key(1)].status = "running"
    assert overdue.first(LATE) == key(0)
    del runs[key(0)]
    assert overdue.first(LATE) is None
    runs[key(2)].owner = None
    assert overdue.first(0) is None
    assert overdue.first(LATE) == key(2)


def test_a_store_purges_many_with_few_walks() -> None:
    async def main() -> int:
        store = MemoryStore()
        await start(store, *[new(n, owner="w1") for n in range(900)])
        await commit(store, *[row(n, 2, at=0, change=Finish("completed", 0)) for n in range(900)])
        store._runs = store._overdue._runs = walked = Walked(store._runs)
        while await store.purge(100):
            pass
        assert not store._runs
        return walked.walks

    assert run(main()) <= 3
