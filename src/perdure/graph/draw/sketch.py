"""Sketch: what is to be seen of a graph, in words, before anybody decides where.

Boxes say what a node is called and what it does; links say when they are taken. Nothing is
escaped here: each format does that in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from perdure.graph.document import Document, EdgeEntry, NodeEntry
from perdure.graph.draw.course import Course, Mark, Passage, course_of
from perdure.graph.waits import OLDER_TYPES

_WHOLE = re.compile(r"^\{\{(.*)\}\}$", re.DOTALL)
_OUTPUT = re.compile(r"\btasks\.(\w+)\.output(?:\.body)?\b")
_BRACES = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)


class Box(msgspec.Struct, frozen=True):
    """A node: `name` is its label or id, `detail` what it does ("" = its type says it all)."""

    id: str
    type: str
    name: str
    detail: str
    mark: Mark | None = None


class Link(msgspec.Struct, frozen=True):
    """An edge. `label`: the condition, shortened, or "default"; `full`: the condition whole."""

    source: str
    target: str
    label: str = ""
    full: str = ""
    passage: Passage | None = None


class Sketch(msgspec.Struct, frozen=True):
    """A graph, and perhaps the course of a run through it."""

    name: str
    version: str
    description: str
    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    course: Course | None = None


def sketch_of(
    document: Document, version: str, history: Iterable[Mapping[str, Any]] | None = None
) -> Sketch:
    """The sketch of a document; with the records of a run's history, of that run."""
    boxes, links = tuple(map(_box, document.nodes)), tuple(map(_link, document.edges))
    return travelled(Sketch(document.name, version, document.description, boxes, links), history)


def travelled(sketch: Sketch, history: Iterable[Mapping[str, Any]] | None) -> Sketch:
    """A sketch with the course of a run through it; as it is where there is no history."""
    if history is None:
        return sketch
    course = course_of(history)
    marks, replace = course.marks, msgspec.structs.replace
    return replace(
        sketch,
        boxes=tuple(replace(b, mark=marks.get(b.id, Mark("pending"))) for b in sketch.boxes),
        links=tuple(
            replace(link, passage=course.passage(link.source, link.target)) for link in sketch.links
        ),
        course=course,
    )


def _box(node: NodeEntry) -> Box:
    kind = OLDER_TYPES.get(node.type, node.type)
    said = _detail(kind, node)
    if node.label and node.label != node.id:
        said = f"{node.id} · {said}" if said else node.id
    return Box(node.id, kind, node.label or node.id, said)


def _detail(kind: str, node: NodeEntry) -> str:
    spec = node.spec if isinstance(node.spec, dict) else {}
    tries = node.retry.attempts if node.retry is not None else 1
    times = f"up to {tries}×" if tries > 1 else ""
    return " · ".join(filter(None, (_does(kind, node.id, spec), times)))


def _does(kind: str, id: str, spec: Mapping[str, Any]) -> str:
    if kind == "TASK":
        step = spec.get("step")
        return "" if step in (None, id) else f"step {_plain(step)}"
    if kind == "CHILD":
        name = spec.get("workflow")
        return "" if name in (None, id) else f"run of {_plain(name)}"
    if kind == "HTTP":
        url = _plain(spec.get("url") or "")
        return f"{spec.get('method') or 'GET'} {re.sub('^https?://', '', url)}".strip()
    if kind == "WAIT":
        if spec.get("until") is not None:
            return f"until {_plain(spec['until'])}"
        seconds = spec.get("duration_seconds")
        return _plain(spec.get("duration") or f"{_plain(seconds)} s")
    if kind == "WAIT_FOR_SIGNAL":
        name = _plain(spec.get("signal") or spec.get("event") or "")
        limit = spec.get("timeout") or spec.get("timeout_seconds")
        if limit is None:
            return f"signal {name}"
        unit = "" if isinstance(limit, str) else " s"
        return f"signal {name} · {_plain(limit)}{unit}"
    return ""


def _plain(value: Any) -> str:
    """A spec's value with its templates as short as people say them."""
    return _BRACES.sub(lambda found: f"{{{_short(found[1])}}}", str(value))


def _short(expression: str) -> str:
    return " ".join(_OUTPUT.sub(r"\1", expression).split())


#: What a default edge is called.
DEFAULT: Final = "default"


def _link(edge: EdgeEntry) -> Link:
    label, full = (DEFAULT, "taken when no condition holds") if edge.default else ("", "")
    if edge.condition is not None:
        full = edge.condition.strip()
        whole = _WHOLE.match(full)
        label = _short(whole[1]) if whole and "{{" not in whole[1] else _plain(full)
    return Link(edge.source, edge.target, label, full)
