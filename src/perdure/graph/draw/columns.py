"""Columns: how far to the right each slot stands, after Brandes and Köpf (2001).

Slots are aligned in blocks with the middle one of those they are joined to, four times: looking up
or down, from the left or the right; each time the blocks are pushed together as far as the gaps
allow, and the middle of the four results is taken. So a link that passes rows runs straight, a
box stands in the middle of its neighbours, and no gap is ever undercut.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from perdure.graph.draw.layers import Layers

#: Between two boxes, and beside a link that passes.
GAP: Final = 30.0
LANE_GAP: Final = 12.0

Pair = tuple[int, int]


def columns_of(layers: Layers) -> list[float]:
    """The middle of each slot, in pixels; the leftmost edge of all is at 0."""
    if not layers.sizes:
        return []
    conflicts = _conflicts(layers)
    results = [
        _aligned(layers, conflicts, up=up, left=left)
        for up in (True, False)
        for left in (True, False)
    ]
    _shift_together(layers, results)
    middle = []
    for slot in range(len(layers.sizes)):
        four = sorted(result[slot] for result in results)
        middle.append((four[1] + four[2]) / 2)
    least = min(x - layers.sizes[slot].width / 2 for slot, x in enumerate(middle))
    return [round(x - least, 1) for x in middle]


def _conflicts(layers: Layers) -> set[Pair]:
    """Joints (upper, lower) that cross the way of a link between two bends: those give way."""
    found: set[Pair] = set()
    place = _places(layers.rows)
    for upper, lower in pairwise(layers.rows):
        first, scanned = 0, 0
        for index, slot in enumerate(lower):
            inner = _inner(layers, slot)
            if inner is None and index < len(lower) - 1:
                continue
            last = len(upper) if inner is None else place[inner]
            for other in lower[scanned : index + 1]:
                for above in layers.above[other]:
                    crosses = place[above] < first or place[above] > last
                    if crosses and not (layers.bend[above] and layers.bend[other]):
                        found.add((above, other))
            scanned, first = index + 1, last
    return found


def _inner(layers: Layers, slot: int) -> int | None:
    """The bend above a bend."""
    if not layers.bend[slot]:
        return None
    above = layers.above[slot][0]
    return above if layers.bend[above] else None


def _places(rows: Sequence[Sequence[int]]) -> dict[int, int]:
    return {slot: index for row in rows for index, slot in enumerate(row)}


def _aligned(layers: Layers, conflicts: set[Pair], *, up: bool, left: bool) -> list[float]:
    rows = layers.rows if up else layers.rows[::-1]
    if not left:
        rows = [row[::-1] for row in rows]
    joined = layers.above if up else layers.below
    roots = _blocks(rows, joined, conflicts, up=up)
    places = _pushed(layers, rows, roots)
    sign = 1 if left else -1
    return [sign * places[roots[slot]] for slot in range(len(roots))]


def _blocks(
    rows: Sequence[Sequence[int]],
    joined: Sequence[Sequence[int]],
    conflicts: set[Pair],
    *,
    up: bool,
) -> list[int]:
    """Each slot's block, by the slot that it begins with."""
    roots = list(range(len(joined)))
    place = _places(rows)
    taken = [False] * len(joined)
    for row in rows:
        last = -1
        for slot in row:
            others = sorted(joined[slot], key=place.__getitem__)
            half = len(others) // 2
            for other in others[half - 1 + len(others) % 2 : half + 1] if others else ():
                pair = (other, slot) if up else (slot, other)
                if place[other] > last and not taken[other] and pair not in conflicts:
                    taken[other] = True
                    roots[slot] = roots[other]
                    last = place[other]
                    break
    return roots


def _pushed(
    layers: Layers, rows: Sequence[Sequence[int]], roots: Sequence[int]
) -> dict[int, float]:
    """Blocks pushed to the left, and from there to the right as far as there is room."""
    after: dict[int, dict[int, float]] = {root: {} for root in roots}
    for row in rows:
        for one, two in pairwise(row):
            gap = _gap(layers, one, two)
            known = after[roots[one]]
            known[roots[two]] = max(known.get(roots[two], 0.0), gap)
    order = _topological(after)
    places = dict.fromkeys(order, 0.0)
    for block in order:
        for other, gap in after[block].items():
            places[other] = max(places[other], places[block] + gap)
    for block in reversed(order):
        room = [places[other] - gap for other, gap in after[block].items()]
        if room:
            places[block] = max(places[block], min(room))
    return places


def _gap(layers: Layers, one: int, two: int) -> float:
    between = LANE_GAP if layers.bend[one] or layers.bend[two] else GAP
    return (layers.sizes[one].width + layers.sizes[two].width) / 2 + between


def _topological(after: dict[int, dict[int, float]]) -> list[int]:
    missing = dict.fromkeys(after, 0)
    for others in after.values():
        for other in others:
            missing[other] += 1
    order = [block for block, count in missing.items() if not count]
    for block in order:
        for other in after[block]:
            missing[other] -= 1
            if not missing[other]:
                order.append(other)
    return order


def _shift_together(layers: Layers, results: list[list[float]]) -> None:
    """Move the four results over the narrowest: those from the left by their left edges, the
    others by their right ones."""
    halves = [size.width / 2 for size in layers.sizes]
    edges = [
        (
            min(x - half for x, half in zip(result, halves, strict=True)),
            max(x + half for x, half in zip(result, halves, strict=True)),
        )
        for result in results
    ]
    narrowest = min(edges, key=lambda edge: edge[1] - edge[0])
    for index, result in enumerate(results):
        side = index % 2  # 0: from the left, 1: from the right
        by = narrowest[side] - edges[index][side]
        results[index] = [x + by for x in result]
