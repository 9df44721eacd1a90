"""SVG of a sketch: one text that needs nothing else, neither fonts nor scripts nor the network.

Light and dark follow the reader's preference. Every node and edge has a title with its whole
text, whatever is cut on the drawing; groups carry roles and labels for those who hear it.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from perdure.graph.draw.layers import Size, Wire
from perdure.graph.draw.layout import Layout, Place, Route, lay_out
from perdure.graph.draw.lettering import fitting, width
from perdure.graph.draw.shapes import drawn, escaped, heard, size_of
from perdure.graph.draw.sketch import Link, Sketch
from perdure.graph.draw.theme import ROOT, style_sheet

MARGIN: Final = 28.0
HEAD: Final = 44.0
LABEL_SIZE: Final = 11.0
LABEL_HEIGHT: Final = 20.0
WIDEST_LABEL: Final = 170.0
TIP: Final = 7.0


def svg(sketch: Sketch) -> str:
    """The drawing. Raises InvalidRequest for a graph that is too tangled to be laid out."""
    numbers = {box.id: index for index, box in enumerate(sketch.boxes)}
    layout = lay_out(
        [size_of(box) for box in sketch.boxes],
        [
            Wire(numbers[link.source], numbers[link.target], _label_size(link))
            for link in sketch.links
        ],
    )
    title, under = _title(sketch)
    widest = max(width(title, 15, bold=True), width(under, 11))
    across, down = max(layout.width, min(widest, 640.0)), layout.height
    shift = (across - layout.width) / 2
    parts = [
        _opening(sketch, across + 2 * MARGIN, down + 2 * MARGIN + HEAD),
        '<rect class="paper" width="100%" height="100%" rx="10"/>',
        _heading(title, under, across),
        f'<g transform="translate({MARGIN + shift:g} {MARGIN + HEAD:g})">',
        *_links(sketch, layout),
        *(drawn(box, place) for box, place in zip(sketch.boxes, layout.boxes, strict=True)),
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


def _title(sketch: Sketch) -> tuple[str, str]:
    course = sketch.course
    if course is None:
        return sketch.name, sketch.description or f"version {sketch.version}"
    return course.run or sketch.name, f"{course.status} · version {sketch.version}"


def _opening(sketch: Sketch, across: float, down: float) -> str:
    title, under = _title(sketch)
    types = list(dict.fromkeys(box.type for box in sketch.boxes))
    states = list(dict.fromkeys(box.mark.state for box in sketch.boxes if box.mark is not None))
    counted = f"{len(sketch.boxes)} nodes, {len(sketch.links)} edges"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{ROOT}" width="{across:g}" '
        f'height="{down:g}" viewBox="0 0 {across:g} {down:g}" '
        f'role="graphics-document document" aria-label="{escaped(title)}">\n'
        f"<title>{escaped(title)}</title>\n<desc>{escaped(f'{under}. {counted}.')}</desc>\n"
        f"<style>{style_sheet(types, states)}</style>"
    )


def _heading(title: str, under: str, across: float) -> str:
    return (
        f'<text class="name title" x="{MARGIN:g}" y="{MARGIN + 10:g}">'
        f"{escaped(fitting(title, 15, across, bold=True))}</text>"
        f'<text class="dim" x="{MARGIN:g}" y="{MARGIN + 27:g}">'
        f"{escaped(fitting(under, 11, across))}</text>"
    )


def _label_size(link: Link) -> Size | None:
    if not link.label:
        return None
    return Size(ceil(min(width(link.label, LABEL_SIZE), WIDEST_LABEL)) + 16, LABEL_HEIGHT)


def _links(sketch: Sketch, layout: Layout) -> list[str]:
    """Those that were taken come last: they lie over the others."""
    order = {"left": 0, "open": 1, "taken": 2, None: 1}
    pairs = sorted(
        zip(sketch.links, layout.routes, strict=True), key=lambda pair: order[pair[0].passage]
    )
    return [_link(link, route) for link, route in pairs]


def _link(link: Link, route: Route) -> str:
    said = f"{link.source} → {link.target}"
    if link.full:
        said += f": {link.full}"
    if link.passage in ("taken", "left"):
        said += f" ({'taken' if link.passage == 'taken' else 'not taken'})"
    parts = [
        f'<g class="{link.passage or "edge"}" {heard(said)}><title>{escaped(said)}</title>',
        f'<path class="link" d="{path_of(route)}"/>',
        _tip(route),
    ]
    if route.label is not None:
        parts.append(_label(link.label, route.label))
    return "".join([*parts, "</g>"])


def path_of(route: Route) -> str:
    """The way as SVG path data; it ends where the arrow's tip begins."""
    points = route.points
    x, y = points[0]
    data = [f"M{x:g} {y:g}"]
    for index in range(1, len(points), 2):
        x, y = points[index]
        data.append(f"V{y - TIP if index == len(points) - 1 else y:g}")
        if index + 1 < len(points):
            to_x, to_y = points[index + 1]
            middle = (y + to_y) / 2
            data.append(f"C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}")
    return "".join(data)


def _tip(route: Route) -> str:
    x, y = route.points[-1]
    return f'<path class="tip" d="M{x:g} {y:g}l-4.5 {-TIP - 1:g}h9z"/>'


def _label(text: str, place: Place) -> str:
    left, top = place.x - place.width / 2, place.y - place.height / 2
    return (
        f'<rect class="ground" x="{left:g}" y="{top:g}" width="{place.width:g}" '
        f'height="{place.height:g}" rx="{place.height / 2:g}"/>'
        f'<text class="condition" x="{place.x:g}" y="{place.y + 4:g}">'
        f"{escaped(fitting(text, LABEL_SIZE, WIDEST_LABEL))}</text>"
    )
