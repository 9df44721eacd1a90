"""Theme: the colours of an SVG drawing, by day and by night, as a style sheet of its own.

Plain rules without variables, so that renderers other than browsers understand them too; all are
bound to the drawing's class, so that a page which holds it is not touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from perdure.graph.draw.course import State

ROOT: Final = "perdure-graph"
FONTS: Final = (
    "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Noto Sans',"
    "'DejaVu Sans',Arial,sans-serif"
)

#: paper, box, its border, text, dim text, lines, a label's ground.
_DAY: Final = ("#fbfcfd", "#ffffff", "#c5ced8", "#17202a", "#5b6875", "#8a97a5", "#eef1f5")
_NIGHT: Final = ("#10151b", "#1a222b", "#3c4957", "#e8edf2", "#9aa8b6", "#6d7b8a", "#26303b")

#: Type of node → its colour by day and by night.
_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "TASK": ("#3563c9", "#7ea6ff"),
    "HTTP": ("#0e7c86", "#4cc9d4"),
    "CHILD": ("#a3376b", "#f08cb9"),
    "SWITCH": ("#a8620a", "#eeae55"),
    "FORK": ("#5d6b7a", "#9fb0c0"),
    "JOIN": ("#5d6b7a", "#9fb0c0"),
    "WAIT": ("#7a45c4", "#b794f4"),
    "WAIT_FOR_SIGNAL": ("#7a45c4", "#b794f4"),
}

#: State → border, ground and text by day, and the same by night.
_STATES: Final[Mapping[State, tuple[tuple[str, str, str], tuple[str, str, str]]]] = {
    "completed": (("#2f9657", "#edf8f0", "#1d6b3b"), ("#3fae6b", "#14281d", "#7fd8a1")),
    "running": (("#2b74c4", "#eaf3fd", "#1b568f"), ("#5aa2ee", "#142638", "#93c5fb")),
    "retrying": (("#c27c12", "#fff6e6", "#84530a"), ("#e2a33c", "#2e2410", "#f2c473")),
    "waiting": (("#7d52c9", "#f4effd", "#5a35a0"), ("#a885ea", "#231b36", "#c9b1f7")),
    "failed": (("#cc3d3d", "#fdeeee", "#9c2424"), ("#ea6a6a", "#341a1a", "#f7a5a5")),
    "canceled": (("#8f7351", "#f6f1ea", "#6b5438"), ("#b89a75", "#2a241c", "#d6c0a3")),
    "compensated": (("#54788c", "#eef3f6", "#35566a"), ("#86a9bb", "#1b262c", "#b4cfdc")),
    "skipped": (("#b9c1ca", "#f6f7f9", "#7b8792"), ("#46515d", "#161c23", "#8592a0")),
    "pending": (("#c5ced8", "#ffffff", "#5b6875"), ("#3c4957", "#1a222b", "#9aa8b6")),
}


def style_sheet(types: list[str], states: list[State]) -> str:
    """The rules for the types and states that a drawing shows."""
    day = _rules(types, states, 0)
    night = _rules(types, states, 1)
    return f"{_FORMS}{day}@media (prefers-color-scheme:dark){{{night}}}"


def _rules(types: list[str], states: list[State], night: int) -> str:
    paper, box, border, text, dim, line, ground = (_DAY, _NIGHT)[night]
    rules = [
        (".paper", f"fill:{paper}"),
        (".name", f"fill:{text}"),
        (".dim", f"fill:{dim}"),
        (".box", f"fill:{box};stroke:{border}"),
        (".link", f"stroke:{line}"),
        (".tip", f"fill:{line}"),
        (".ground", f"fill:{ground};stroke:{border}"),
        (".condition", f"fill:{text}"),
    ]
    for kind in types:
        colour = _TYPES.get(kind, _TYPES["TASK"])[night]
        rules.append((f".of-{kind} .icon", f"stroke:{colour}"))
    for state in states:
        edge, fill, said = _STATES[state][night]
        rules += [
            (f".is-{state} .box", f"fill:{fill};stroke:{edge}"),
            (f".is-{state} .state", f"fill:{said}"),
            (f".is-{state} .sign", f"fill:{edge}"),
            (f".is-{state} .mark", f"stroke:{paper}"),
        ]
    if states:
        taken, said = _STATES["completed"][night][0], _STATES["skipped"][night][2]
        rules += [
            (".taken .link", f"stroke:{taken}"),
            (".taken .tip", f"fill:{taken}"),
            (".taken .ground", f"stroke:{taken}"),
            (".left .condition", f"fill:{said}"),
            (".is-skipped .name", f"fill:{said}"),
        ]
    return "".join(f".{ROOT} {where}{{{what}}}" for where, what in rules)


_FORMS: Final = "".join(
    f".{ROOT} {where}{{{what}}}"
    for where, what in (
        ("text", f"font-family:{FONTS}"),
        (".name", "font-size:13px;font-weight:600"),
        (".dim", "font-size:11px"),
        (".state", "font-size:11px;font-weight:600"),
        (".title", "font-size:15px"),
        (".condition", "font-size:11px;text-anchor:middle"),
        (".box", "stroke-width:1.25"),
        (".link", "fill:none;stroke-width:1.4"),
        (".icon", "fill:none;stroke-width:1.5;stroke-linecap:round;stroke-linejoin:round"),
        (".mark", "fill:none;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round"),
        (".ground", "stroke-width:.75"),
        (".taken .link", "stroke-width:2.4"),
        (".left .link", "stroke-dasharray:4 4"),
        (".left .link,.perdure-graph .left .tip", "opacity:.55"),
        (".is-skipped .box", "stroke-dasharray:4 3"),
        (".is-skipped .icon", "opacity:.5"),
        (".is-failed .box,.perdure-graph .is-running .box", "stroke-width:2"),
    )
)
