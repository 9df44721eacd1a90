"""Mermaid text of a sketch: a `flowchart` that any Mermaid renderer lays out.

Ids keep their names where Mermaid takes them as names. Labels are quoted, and every sign in them
that is not a letter, a digit or harmless is written as a character code, so that nothing in a
document is read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from perdure.graph.draw.course import State
from perdure.graph.draw.sketch import Box, Link, Sketch

#: How long a label may get; what is longer is cut.
LONGEST_LABEL: Final = 60
LONGEST_CONDITION: Final = 40

#: Around a label, by type of node.
_SHAPES: Final[Mapping[str, tuple[str, str]]] = {
    "TASK": ("[", "]"), "HTTP": ("[[", "]]"), "CHILD": ("[/", "/]"), "SWITCH": ("{", "}"),
    "FORK": ("{{", "}}"), "JOIN": ("{{", "}}"), "WAIT": ("([", "])"),
    "WAIT_FOR_SIGNAL": ("([", "])"),
}  # fmt: skip
#: Words that mean something where a node's id may stand.
_KEYWORDS: Final = frozenset(
    "accdescr acctitle bt call class classdef click default direction end flowchart graph href "
    "interpolate lr linkstyle rl style subgraph tb td".split()
)
#: What would be read as an item of a list: "1. fetch", "- fetch".
_LISTED: Final = re.compile(r"\d*[.-]")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
#: Mermaid shows neither colour nor state of its own: classes with colours that suit both themes.
_CLASSES: Final[Mapping[State, tuple[str, str]]] = {
    "completed": ("✓", "fill:#d8f3dc,stroke:#2d8a4e,color:#143d24"),
    "running": ("▶", "fill:#d7e9fb,stroke:#2b74c4,color:#12365c"),
    "retrying": ("↻", "fill:#fdeccd,stroke:#b7791f,color:#553509"),
    "waiting": ("◷", "fill:#e9e0fb,stroke:#7a52c7,color:#35215f"),
    "failed": ("✗", "fill:#fbdcdc,stroke:#c53a3a,color:#5e1515"),
    "canceled": ("■", "fill:#eadfd3,stroke:#8a6d4b,color:#43341f"),
    "skipped": ("–", "fill:#f1f1f1,stroke:#a0a0a0,color:#6b6b6b,stroke-dasharray:4 3"),
    "compensated": ("↺", "fill:#e3ebef,stroke:#54788c,color:#24404f"),
    "pending": ("", "fill:#ffffff,stroke:#a0a0a0,color:#4a4a4a"),
}


def mermaid(sketch: Sketch) -> str:
    """The text, with a line break at its end."""
    ids = _ids(box.id for box in sketch.boxes)
    lines = ["flowchart TD"]
    lines += [f"    {ids[box.id]}{_box(box)}" for box in sketch.boxes]
    lines += [f"    {_link(link, ids)}" for link in sketch.links]
    lines += [f"    {line}" for line in _states(sketch, ids)]
    return "\n".join(lines) + "\n"


def _ids(nodes: Iterable[str]) -> dict[str, str]:
    """Node → a name that Mermaid takes, each one once."""
    ids: dict[str, str] = {}
    taken: set[str] = set()
    for node in nodes:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", node)
        if plain.lower() in _KEYWORDS or not _NAME.fullmatch(plain):
            plain = f"n_{plain}"
        name, number = plain, 2
        while name in taken:
            name, number = f"{plain}_{number}", number + 1
        taken.add(name)
        ids[node] = name
    return ids


def _box(box: Box) -> str:
    opening, closing = _SHAPES.get(box.type, ("[", "]"))
    lines = [_text(box.name, LONGEST_LABEL)]
    if box.detail:
        lines.append(f"<small>{_text(box.detail, LONGEST_LABEL)}</small>")
    if box.mark is not None and box.mark.state != "pending":
        sign = _CLASSES[box.mark.state][0]
        again = f", attempt {box.mark.attempt}" if box.mark.attempt > 1 else ""
        lines.append(f"<small>{sign} {box.mark.state}{again}</small>")
    return f'{opening}"{"<br>".join(lines)}"{closing}'


def _link(link: Link, ids: Mapping[str, str]) -> str:
    arrow = {"taken": "==>", "left": "-.->"}.get(link.passage or "", "-->")
    label = f'|"{_text(link.label, LONGEST_CONDITION)}"|' if link.label else ""
    return f"{ids[link.source]} {arrow}{label} {ids[link.target]}"


def _states(sketch: Sketch, ids: Mapping[str, str]) -> Iterable[str]:
    having: dict[State, list[str]] = {}
    for box in sketch.boxes:
        if box.mark is not None:
            having.setdefault(box.mark.state, []).append(ids[box.id])
    for state, (_, style) in _CLASSES.items():
        if state in having:
            yield f"classDef is_{state} {style}"
            yield f"class {','.join(having[state])} is_{state}"


def _text(text: str, longest: int) -> str:
    line = " ".join(text.split())
    if len(line) > longest:
        line = line[: longest - 1].rstrip() + "…"
    listed = _LISTED.match(line)
    at = -1 if listed is None else listed.end() - 1
    return "".join(c if _harmless(c) and i != at else f"#{ord(c)};" for i, c in enumerate(line))


def _harmless(letter: str) -> bool:
    return letter.isalnum() or letter in " _-.,·…×"
