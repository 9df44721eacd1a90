"""Finds files that import one another in a circle, so that none of them can be read, or changed,
without the others.

Every import counts: at the top, inside a function, and for types alone. The last two change nothing
for a reader. Python would run into the first kind only.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Mapping

from tests.tidy.tree import Source

Arrows = Mapping[str, frozenset[str]]
Circle = tuple[str, ...]


def arrows(sources: Iterable[Source]) -> Arrows:
    """By module: the others of these that it imports."""
    known = {source.module: source for source in sources}
    return {module: _imported(source, set(known)) - {module} for module, source in known.items()}


def _imported(source: Source, known: set[str]) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = _package(source, node)
            for name in node.names:
                inside = f"{package}.{name.name}"  # a module of the package, or a name in it
                found.add(inside if inside in known else package)
    return frozenset(found & known)


def _package(source: Source, node: ast.ImportFrom) -> str:
    """What is imported from, in full: dots count from the file's own package."""
    if not node.level:
        return node.module or ""
    parts = source.module.split(".")
    up = node.level - source.path.endswith("/__init__.py")
    return ".".join([*parts[: len(parts) - up], *filter(None, [node.module])])


def circles(known: Arrows) -> list[Circle]:
    """The largest groups of modules that all lead to one another, each in order."""
    reach = {module: _reached(module, known) for module in known}
    found = {
        tuple(sorted(other for other in reach[module] if module in reach[other]))
        for module in known
        if module in reach[module]
    }
    return sorted(found)


def _reached(start: str, known: Arrows) -> set[str]:
    """What a module leads to; itself only where a way leads back."""
    reached: set[str] = set()
    todo = [start]
    while todo:
        new = known[todo.pop()] - reached
        reached |= new
        todo += new
    return reached


def way_round(circle: Circle, known: Arrows) -> list[str]:
    """A shortest way from the circle's first module back to it."""
    first = circle[0]
    came_from: dict[str, str] = {}
    todo = deque([first])
    while first not in came_from:
        module = todo.popleft()
        for other in sorted(known[module] - came_from.keys()):
            came_from[other] = module
            todo.append(other)
    way = [first, came_from[first]]
    while way[-1] != first:
        way.append(came_from[way[-1]])
    return way[::-1]


def not_allowed(
    known: Arrows, rooms: Mapping[str, str], allowed: Mapping[Circle, str]
) -> list[str]:
    """The circles that are neither within one of the rooms (packages) nor, as they are, allowed."""
    return [
        f"{len(circle)} files import one another: {' -> '.join(way_round(circle, known))}: put "
        "what both need below both"
        for circle in circles(known)
        if circle not in allowed and _room_of(circle, rooms) is None
    ]


def not_needed(known: Arrows, rooms: Mapping[str, str], allowed: Mapping[Circle, str]) -> list[str]:
    """What is allowed and is not there, or not as it was, any more: the lists may only shrink."""
    found = circles(known)
    needed = {_room_of(circle, rooms) for circle in found}
    gone = [", ".join(circle) for circle in allowed if circle not in found]
    return [*gone, *(room for room in rooms if room not in needed)]


def _room_of(circle: Circle, rooms: Iterable[str]) -> str | None:
    """The room in which the whole circle lies."""
    for room in rooms:
        if all(module == room or module.startswith(f"{room}.") for module in circle):
            return room
    return None
