"""Places: the free are found by when they are due, and what is parked a thousand times leaves
nothing behind."""

from __future__ import annotations

from perdure.conformance.rows import key, new
from perdure.stores.memory.places import Places
from perdure.stores.memory.run import MemoryRun
from perdure.stores.rows import NEVER


def free(places: Places, n: int, ready_at: int, definition: str = "order") -> MemoryRun:
    run = MemoryRun(new(n, ready_at=ready_at, definition=definition))
    places.put(key(n), run)
    return run


def test_the_earliest_of_the_definitions_asked_for_comes_first() -> None:
    places = Places()
    free(places, 1, 30, "a")
    free(places, 2, 10, "b")
    free(places, 3, 5, "c")
    free(places, 4, NEVER, "a")
    assert places.earliest(["a", "b"], 100) == key(2)
    assert places.earliest(["a", "b"], 9) is None
    assert places.earliest([], 100) is None
    assert places.earliest(["nope"], 100) is None


def test_a_run_is_found_by_its_last_time_only() -> None:
    places = Places()
    run = free(places, 1, 30)
    for at in (10, 50):
        run.ready_at = at
        places.put(key(1), run)
    assert places.earliest(["order"], 49) is None
    assert places.earliest(["order"], 50) == key(1)
    run.owner = "w1"
    places.put(key(1), run)
    assert places.earliest(["order"], 99) is None


def test_entries_that_hold_no_more_do_not_pile_up() -> None:
    places = Places()
    run = free(places, 1, NEVER)
    for at in range(10_000):
        run.ready_at = 10**15 - at
        places.put(key(1), run)
    assert len(places._free["order"].heap) < 200


def test_who_holds_what_follows_every_change() -> None:
    places = Places()
    run = free(places, 1, 5)
    assert places.owners() == []
    for owner in ("w1", "w2", "w2"):
        run.owner = owner
        places.put(key(1), run)
        assert places.owners() == [owner]
        assert list(places.held(owner)) == [key(1)]
    assert places.held("w1") == {}
    places.remove(key(1), run)
    assert places.owners() == []
