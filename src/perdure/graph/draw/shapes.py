"""Shapes: boxes of nodes, as SVG elements. What a node is can be seen by its outline too.

Steps have round corners, a SWITCH points to the sides, waits are pills, FORK and JOIN are small.
All text is escaped here and nowhere else.
"""

from __future__ import annotations

import re
from math import ceil
from typing import Final
from xml.sax.saxutils import escape

from perdure.graph.draw.icons import STATES, TYPES
from perdure.graph.draw.layers import Size
from perdure.graph.draw.layout import Place
from perdure.graph.draw.lettering import fitting, width
from perdure.graph.draw.sketch import Box

NAME_SIZE: Final = 13.0
DETAIL_SIZE: Final = 11.0
WIDEST: Final = 230.0
NARROWEST: Final = 64.0
LINE: Final = 16.0
#: What is left and right of the text: the icon and the margins.
BESIDE: Final = 46.0
POINT: Final = 12.0

#: Characters that XML has no way to hold.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Text for an element or a quoted attribute."""
    return escape(_NOT_XML.sub("\ufffd", text), {'"': "&quot;"})


def heard(said: str) -> str:
    """The attributes of a group that is one thing, for those who hear the drawing."""
    return f'role="graphics-symbol img" aria-label="{escaped(said)}"'


def lines_of(box: Box) -> list[tuple[str, str, float]]:
    """What is written in a box: class, text, and the size of its letters."""
    lines = [("name", box.name, NAME_SIZE)]
    if box.detail:
        lines.append(("dim", box.detail, DETAIL_SIZE))
    if box.mark is not None and box.mark.state != "pending":
        again = f" · attempt {box.mark.attempt}" if box.mark.attempt > 1 else ""
        lines.append(("state", f"{box.mark.state}{again}", DETAIL_SIZE))
    return lines


def size_of(box: Box) -> Size:
    """How much room the box takes."""
    needed = max(
        width(" ".join(text.split()), size, bold=kind != "dim")
        for kind, text, size in lines_of(box)
    )
    beside = BESIDE + (2 * POINT if box.type == "SWITCH" else 0)
    height = 20 + LINE * len(lines_of(box))
    return Size(ceil(beside + min(max(needed, NARROWEST), WIDEST)), height)


def drawn(box: Box, place: Place) -> str:
    """The box as an SVG group, with everything it stands for as its title."""
    state = "" if box.mark is None else f" is-{box.mark.state}"
    left = place.x - place.width / 2 + (POINT if box.type == "SWITCH" else 0)
    top = place.y - place.height / 2
    room = place.width - BESIDE - (2 * POINT if box.type == "SWITCH" else 0)
    icon, at = TYPES.get(box.type, TYPES["TASK"]), f"translate({left + 12:g} {place.y - 8:g})"
    parts = [
        f'<g class="of-{escaped(box.type)}{state}" {heard(_spoken(box))}>',
        f"<title>{escaped(_whole(box))}</title>",
        _outline(box.type, place),
        f'<path class="icon" transform="{at}" d="{icon}"/>',
    ]
    lines = lines_of(box)
    for index, (kind, text, size) in enumerate(lines):
        y = place.y + LINE * (index - (len(lines) - 1) / 2) + size * 0.36
        shown = fitting(text, size, room, bold=kind != "dim")
        parts.append(f'<text class="{kind}" x="{left + 36:g}" y="{y:.1f}">{escaped(shown)}</text>')
    if box.mark is not None and box.mark.state != "pending":
        x, y = place.x + place.width / 2 - 14 - (POINT if box.type == "SWITCH" else 0), top - 8
        parts.append(
            f'<g transform="translate({x:g} {y:g})"><circle class="sign" cx="8" cy="8" r="8"/>'
            f'<path class="mark" d="{STATES[box.mark.state]}"/></g>'
        )
    return "".join([*parts, "</g>"])


def _outline(kind: str, place: Place) -> str:
    left, top = place.x - place.width / 2, place.y - place.height / 2
    if kind == "SWITCH":
        right, bottom = left + place.width, top + place.height
        return (
            f'<path class="box" d="M{left:g} {place.y:g}L{left + POINT:g} {top:g}H{right - POINT:g}'
            f'L{right:g} {place.y:g}L{right - POINT:g} {bottom:g}H{left + POINT:g}Z"/>'
        )
    round_ = place.height / 2 if kind in ("WAIT", "WAIT_FOR_SIGNAL") else 8
    if kind in ("FORK", "JOIN"):
        round_ = 2
    return (
        f'<rect class="box" x="{left:g}" y="{top:g}" width="{place.width:g}" '
        f'height="{place.height:g}" rx="{round_:g}"/>'
    )


def _spoken(box: Box) -> str:
    """The node in one sentence, for those who hear the drawing."""
    said = [box.name if box.name == box.id else f"{box.name} ({box.id})", _type_in_words(box.type)]
    if box.mark is not None:
        said.append("not reached" if box.mark.state == "pending" else box.mark.state)
        if box.mark.attempt > 1:
            said.append(f"attempt {box.mark.attempt}")
    return ", ".join(said)


def _whole(box: Box) -> str:
    """All that is known, uncut, one thing a line."""
    remark = "" if box.mark is None else box.mark.remark
    return "\n".join(filter(None, (_spoken(box), box.detail, remark)))


def _type_in_words(kind: str) -> str:
    return kind.replace("_", " ").lower() if kind != "HTTP" else kind
