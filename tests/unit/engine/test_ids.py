"""Ids: in order whatever the clock does, and never the same in two processes."""

from __future__ import annotations

from uuid import UUID

import pytest

from perdure.engine.ids import Ids


class Times:
    """A clock set by hand, in ms."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now * 1000


@pytest.mark.rule("G-103")
def test_ids_grow_while_the_clock_goes_on_stands_still_or_goes_back() -> None:
    times = Times()
    ids, made = Ids(times), []
    for moved in (0, 0, 1, 0, -5_000, 0, 5_002, 1):
        times.now += moved
        made += [ids.text() for _ in range(100)]
    assert made == sorted(set(made))
    assert {UUID(id).version for id in made} == {7}
    assert {UUID(id).variant for id in made} == {"specified in RFC 4122"}


def test_text_and_bytes_are_of_one_sequence() -> None:
    ids = Ids(Times())
    first, second, third = ids.text(), UUID(bytes=ids.key()), ids.text()
    assert UUID(first) < second < UUID(third)


def test_a_forked_process_makes_other_ids_than_its_parent() -> None:
    times = Times()
    ids = Ids(times)
    ids.text()
    parents, childs = Ids(times), Ids(times)
    for copy in (parents, childs):  # both stand where the one did
        for name in ("_chance", "_count", "_head", "_millisecond", "_prefix"):
            setattr(copy, name, getattr(ids, name))
    childs.forked()
    assert parents.text() != childs.text()
    times.now += 1
    assert parents.text()[:23] != childs.text()[:23]
    assert UUID(childs.text()).version == 7
