"""Layout: where boxes, labels and links of a drawing are, from top to bottom.

Links run straight down within a row, in a slot of their own, and bend only between rows: so no
link ever touches a box that is not its own, and no two boxes or labels overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from perdure.graph.draw.columns import columns_of
from perdure.graph.draw.crossings import order_rows
from perdure.graph.draw.layers import Layers, Size, Wire, layers_of

#: Between two rows at least, and at most; it grows with how far links go aside.
CLOSE: Final = 34.0
APART: Final = 120.0
#: Above and below a label, where it stands between rows of boxes.
LABEL_CLOSE: Final = 26.0
#: How far a link runs straight out of its source, and into its target, between rows.
OUT: Final = 4.0
INTO: Final = 13.0

Point = tuple[float, float]


class Place(msgspec.Struct, frozen=True):
    """A rectangle by its middle, in pixels."""

    x: float
    y: float
    width: float
    height: float


class Route(msgspec.Struct, frozen=True):
    """A link's way: straight down between points 0 and 1, 2 and 3, …, aside between the others.
    `label`: where its label stands."""

    points: tuple[Point, ...]
    label: Place | None = None


class Layout(msgspec.Struct, frozen=True):
    """Boxes and links in the order in which they were given."""

    width: float
    height: float
    boxes: tuple[Place, ...]
    routes: tuple[Route, ...]


def lay_out(boxes: Sequence[Size], wires: Sequence[Wire]) -> Layout:
    """A place for everything. Raises InvalidRequest for what is too tangled."""
    layers = layers_of(boxes, wires)
    order_rows(layers)
    columns = columns_of(layers)
    tops, heights = _rows(layers, columns)
    places = [
        Place(columns[slot], tops[row] + heights[row] / 2, size.width, size.height)
        for slot, (size, row) in enumerate(zip(layers.sizes, layers.row_of, strict=True))
    ]
    routes = [
        _route([places[slot] for slot in way], [layers.row_of[slot] for slot in way], tops, heights)
        for way in layers.ways
    ]
    return Layout(
        max((place.x + place.width / 2 for place in places), default=0.0),
        tops[-1] + heights[-1] if tops else 0.0,
        tuple(places[: len(boxes)]),
        tuple(
            route if wire.label is None else Route(route.points, places[way[1]])
            for route, wire, way in zip(routes, wires, layers.ways, strict=True)
        ),
    )


def _rows(layers: Layers, columns: Sequence[float]) -> tuple[list[float], list[float]]:
    """Where each row begins and how high it is."""
    heights = [max((layers.sizes[s].height for s in row), default=0.0) for row in layers.rows]
    tops, y = [], 0.0
    for index, row in enumerate(layers.rows):
        tops.append(y)
        aside = max((abs(columns[s] - columns[o]) for s in row for o in layers.below[s]), default=0)
        near = LABEL_CLOSE if _labels_near(layers, index) else CLOSE
        y += heights[index] + round(min(near + aside * 0.07, APART), 1)
    return tops, heights


def _labels_near(layers: Layers, index: int) -> bool:
    """Whether this row or the next one holds labels alone."""
    return any(
        row and all(layers.bend[slot] for slot in row) for row in layers.rows[index : index + 2]
    )


def _route(
    places: Sequence[Place], rows: Sequence[int], tops: Sequence[float], heights: Sequence[float]
) -> Route:
    first, last = places[0], places[-1]
    points: list[Point] = [
        (first.x, first.y + first.height / 2),
        (first.x, tops[rows[0]] + heights[rows[0]] + OUT),
    ]
    for place, row in zip(places[1:-1], rows[1:-1], strict=True):
        points += [(place.x, tops[row]), (place.x, tops[row] + heights[row])]
    points += [(last.x, tops[rows[-1]] - INTO), (last.x, last.y - last.height / 2)]
    return Route(_merged(points))


def _merged(points: list[Point]) -> tuple[Point, ...]:
    """Without the bends of what runs straight down anyway."""
    kept = points[:2]
    for upper, lower in pairwise(points[i : i + 2] for i in range(0, len(points), 2)):
        if lower[0][0] == upper[1][0]:
            kept[-1] = lower[1]
        else:
            kept += lower
    return tuple(kept)
