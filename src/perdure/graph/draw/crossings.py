"""Crossings: the order of the slots in each row, so that few links cross.

Sweeps down and up put every slot near the middle of those it is joined to, then neighbours swap
places where that helps; the best order seen is kept. The same input gives the same order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from perdure.graph.draw.layers import Layers

#: Sweeps without any gain after which no more are tried.
PATIENCE: Final = 4


def order_rows(layers: Layers) -> None:
    """Put the rows of `layers` in order."""
    size = len(layers.sizes)
    sweeps = 24 if size < 1000 else 8 if size < 5000 else 4 if size < 30_000 else 1
    place = [0] * size
    for row in layers.rows:
        _number(row, place)
    best, fewest, idle = [list(row) for row in layers.rows], crossings(layers), 0
    for sweep in range(sweeps):
        if not fewest or idle >= PATIENCE:
            break
        _sweep(layers, place, down=sweep % 2 == 0)
        if size < 3000:
            _swap(layers, place)
        count = crossings(layers)
        idle += 1
        if count < fewest:
            best, fewest, idle = [list(row) for row in layers.rows], count, 0
    layers.rows = best


def _number(row: Sequence[int], place: list[int]) -> None:
    for index, slot in enumerate(row):
        place[slot] = index


def _sweep(layers: Layers, place: list[int], *, down: bool) -> None:
    rows = layers.rows if down else layers.rows[::-1]
    joined = layers.above if down else layers.below
    for row in rows[1:]:
        middle = {slot: _middle(joined[slot], place, place[slot]) for slot in row}
        row.sort(key=middle.__getitem__)
        _number(row, place)


def _middle(joined: Sequence[int], place: Sequence[int], otherwise: float) -> float:
    if not joined:
        return otherwise
    return sum(place[slot] for slot in joined) / len(joined)


def _swap(layers: Layers, place: list[int]) -> None:
    """Let neighbours change places where fewer links cross then."""
    for row in layers.rows:
        gained = True
        while gained:
            gained = False
            for index in range(len(row) - 1):
                left, right = row[index], row[index + 1]
                if _gain(layers, place, left, right) > 0:
                    row[index], row[index + 1] = right, left
                    place[left], place[right] = index + 1, index
                    gained = True


def _gain(layers: Layers, place: Sequence[int], left: int, right: int) -> int:
    gain = 0
    for joined in (layers.above, layers.below):
        lefts = [place[slot] for slot in joined[left]]
        rights = [place[slot] for slot in joined[right]]
        gain += sum((a > b) - (a < b) for a in lefts for b in rights)
    return gain


def crossings(layers: Layers) -> int:
    """How many pairs of links cross."""
    place = [0] * len(layers.sizes)
    for row in layers.rows:
        _number(row, place)
    total = 0
    for row in layers.rows:
        seen: list[int] = []
        for slot in row:
            for target in sorted(place[other] for other in layers.below[slot]):
                at = bisect_right(seen, target)
                total += len(seen) - at
                seen.insert(at, target)
    return total
