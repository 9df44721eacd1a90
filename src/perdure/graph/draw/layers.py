"""Layers: boxes in rows, so that every link leads down, and each row a link crosses has a slot.

A box stands in the row after the lowest of those that lead to it (longest path). A link that
passes rows gets a bend in each of them, which keeps its way free of boxes; a link with a label
gets a slot for it in a row of labels just below its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from perdure.model.errors import InvalidRequest

#: A drawing of more slots than this would take long and say nothing to anybody.
MOST_SLOTS: Final = 120_000
#: How much room a link takes in a row that it only passes.
LANE: Final = 10.0


class Size(msgspec.Struct, frozen=True):
    """How much room a box takes, in pixels."""

    width: float
    height: float


class Wire(msgspec.Struct, frozen=True):
    """A link between boxes, by their numbers; `label`: how much room its label takes, if any."""

    source: int
    target: int
    label: Size | None = None


class Layers(msgspec.Struct):
    """Slots by number: the first ones are the boxes', in their order. `rows` hold them from left
    to right, `above` and `below` say which they are joined to in the next row. `ways`: for each
    wire its slots from the source's to the target's."""

    sizes: list[Size]
    boxes: int
    rows: list[list[int]]
    row_of: list[int]
    above: list[list[int]]
    below: list[list[int]]
    ways: list[list[int]]
    #: Of every slot: whether it is only passed.
    bend: list[bool]


def layers_of(boxes: Sequence[Size], wires: Sequence[Wire]) -> Layers:
    """The rows of an acyclic graph. Raises InvalidRequest where it is too tangled to be drawn."""
    ranks = _ranks(len(boxes), wires)
    labelled = {ranks[wire.source] for wire in wires if wire.label is not None}
    first_row, count = _first_rows(max(ranks, default=-1) + 1, labelled)
    row_of = [first_row[rank] for rank in ranks]
    slots = sum(row_of[wire.target] - row_of[wire.source] for wire in wires) + len(boxes)
    if slots > MOST_SLOTS:
        raise InvalidRequest(
            f"this graph is too tangled for an SVG drawing: its {len(wires):,} edges would cross "
            f"{slots:,} rows (at most {MOST_SLOTS:,}); draw it as mermaid"
        )
    layers = Layers(
        list(boxes), len(boxes), [[] for _ in range(count)], row_of,
        [[] for _ in boxes], [[] for _ in boxes], [], [False] * len(boxes),
    )  # fmt: skip
    for wire in wires:
        layers.ways.append(_way(layers, wire))
    _fill_rows(layers)
    return layers


def _ranks(boxes: int, wires: Sequence[Wire]) -> list[int]:
    """The length of the longest path to each box. One that nothing leads to stands just above
    the first that it leads to."""
    following: list[list[int]] = [[] for _ in range(boxes)]
    missing = [0] * boxes
    for wire in wires:
        following[wire.source].append(wire.target)
        missing[wire.target] += 1
    starts = [box for box in range(boxes) if not missing[box]]
    ranks = [0] * boxes
    todo = list(starts)
    for box in todo:
        for other in following[box]:
            ranks[other] = max(ranks[other], ranks[box] + 1)
            missing[other] -= 1
            if not missing[other]:
                todo.append(other)
    for box in starts:
        ranks[box] = min((ranks[other] for other in following[box]), default=1) - 1
    return ranks


def _first_rows(ranks: int, labelled: set[int]) -> tuple[list[int], int]:
    """The row of each rank: below one whose links have labels there is a row for these."""
    rows, row = [], 0
    for rank in range(ranks):
        rows.append(row)
        row += 2 if rank in labelled else 1
    return rows, row


def _way(layers: Layers, wire: Wire) -> list[int]:
    way = [wire.source]
    first, last = layers.row_of[wire.source], layers.row_of[wire.target]
    for row in range(first + 1, last):
        labels = row == first + 1 and wire.label is not None
        size = wire.label if labels and wire.label is not None else Size(LANE, 0)
        slot = len(layers.sizes)
        layers.sizes.append(size)
        layers.row_of.append(row)
        layers.above.append([])
        layers.below.append([])
        layers.bend.append(True)
        way.append(slot)
    way.append(wire.target)
    for upper, lower in pairwise(way):
        layers.below[upper].append(lower)
        layers.above[lower].append(upper)
    return way


def _fill_rows(layers: Layers) -> None:
    """In the order of a walk from the first box down, so that what belongs together is near."""
    seen = [False] * len(layers.sizes)
    for start in (*(b for b in range(layers.boxes) if not layers.above[b]), *range(layers.boxes)):
        todo = [start]
        while todo:
            slot = todo.pop()
            if seen[slot]:
                continue
            seen[slot] = True
            layers.rows[layers.row_of[slot]].append(slot)
            todo.extend(reversed(layers.below[slot]))
