"""Layouts of random graphs: nothing overlaps, no link touches a box that is not its own."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.graph.draw.layers import Size, Wire
from perdure.graph.draw.layout import Layout, Place, Route, lay_out

sizes = st.builds(Size, st.sampled_from([60.0, 111.0, 276.0]), st.sampled_from([36.0, 52.0, 68.0]))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Size], list[Wire]]:
    """An acyclic graph, its boxes in any order, some links with labels."""
    boxes = draw(st.lists(sizes, min_size=1, max_size=24))
    numbers = draw(st.permutations(range(len(boxes))))
    pairs = draw(
        st.sets(
            st.tuples(st.integers(0, len(boxes) - 1), st.integers(0, len(boxes) - 1)).filter(
                lambda pair: pair[0] < pair[1]
            ),
            max_size=60,
        )
        if len(boxes) > 1
        else st.just(set())
    )
    labels = st.none() | st.builds(Size, st.sampled_from([30.0, 180.0]), st.just(20.0))
    return boxes, [Wire(numbers[a], numbers[b], draw(labels)) for a, b in sorted(pairs)]


def box(place: Place, margin: float = 0) -> tuple[float, float, float, float]:
    across, down = place.width / 2 + margin, place.height / 2 + margin
    return place.x - across, place.y - down, place.x + across, place.y + down


def overlap(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def pieces(route: Route) -> list[tuple[float, float, float, float]]:
    """A rectangle around each piece of a link: a curve stays within that of its ends."""
    around = []
    for (x0, y0), (x1, y1) in zip(route.points, route.points[1:], strict=False):
        assert y0 <= y1, "a link never goes up"
        around.append((min(x0, x1) - 0.1, y0, max(x0, x1) + 0.1, y1))
    return around


def check(boxes: list[Size], wires: list[Wire], layout: Layout) -> None:
    assert [(p.width, p.height) for p in layout.boxes] == [(s.width, s.height) for s in boxes]
    labels = [route.label for route in layout.routes if route.label is not None]
    assert len(labels) == sum(wire.label is not None for wire in wires)
    for one, two in combinations([*layout.boxes, *labels], 2):
        assert not overlap(box(one, 4), box(two, 4))
    for wire, route in zip(wires, layout.routes, strict=True):
        source, target = layout.boxes[wire.source], layout.boxes[wire.target]
        assert route.points[0] == (source.x, source.y + source.height / 2)
        assert route.points[-1] == (target.x, target.y - target.height / 2)
        foreign = [
            place
            for number, place in enumerate(layout.boxes)
            if number not in (wire.source, wire.target)
        ] + [label for label in labels if label is not route.label]
        for piece in pieces(route):
            assert not any(overlap(piece, box(place, -0.1)) for place in foreign)
            assert not overlap(piece, box(source, -0.5))
            assert not overlap(piece, box(target, -0.5))
    for x0, y0, x1, y1 in map(box, layout.boxes):
        assert x0 >= -0.2
        assert y0 >= 0
        assert x1 <= layout.width + 0.2
        assert y1 <= layout.height + 0.2


@settings(deadline=None, max_examples=150)
@given(graphs())
def test_no_two_boxes_overlap_and_links_keep_off_them(
    drawn: tuple[list[Size], list[Wire]],
) -> None:
    boxes, wires = drawn
    layout = lay_out(boxes, wires)
    check(boxes, wires, layout)
    assert lay_out(boxes, wires) == layout


def test_a_thousand_boxes_in_a_row_and_a_link_past_them_all() -> None:
    boxes = [Size(100, 36)] * 1000
    wires = [Wire(n, n + 1) for n in range(999)] + [Wire(0, 999, Size(60, 20))]
    check_ends = lay_out(boxes, wires)
    (left, *_), route = box(check_ends.boxes[500]), check_ends.routes[-1]
    assert len(route.points) <= 8
    assert all(not left < x < left + 100 for x, _ in route.points[2:-2])


def test_a_tree_without_crossings_is_drawn_without_them() -> None:
    from perdure.graph.draw.crossings import crossings, order_rows
    from perdure.graph.draw.layers import layers_of

    wires = [Wire(n, child) for n in range(40) for child in (3 * n + 1, 3 * n + 2, 3 * n + 3)]
    layers = layers_of([Size(50, 30)] * 121, wires)
    order_rows(layers)
    assert crossings(layers) == 0
