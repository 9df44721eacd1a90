"""What an expression reads, told from its syntax tree and never from running it.

The engine loads only the task outputs a definition can read, so a read that cannot be told
(`tasks[x]`, `tasks` handed on whole) is flagged `computed` and everything must be loaded. When in
doubt a read is reported: a missing one would be a wrong run, one too many costs a query.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from perdure.expr.access import Step
from perdure.expr.errors import position
from perdure.expr.tree import Binary, Has, Ident, Index, Literal, Logic, Node, Select, Unary
from perdure.expr.values import TYPE_NAMES

Position = tuple[int, int]
Path = tuple[str | int, ...]
_WHOLE = ("output", "status", "error")


class References(msgspec.Struct, frozen=True):
    """The reads of one expression, or of many merged.

    `roots`: the free names. `tasks`: ids read as `tasks.<id>` or `tasks["<id>"]`. `task_fields`:
    (id, field) for each first field read of a task; a task read whole counts as reading output,
    status and error. `computed`: some read of `tasks` cannot be told. `guarded`: ids whose output
    is read, and only where has(), optional syntax or a test of the status being "completed"
    protects it. `secrets`: names read as `secrets.<name>`. `root_positions` and `task_positions`:
    line and column of the first read of each, within the text that was compiled. `paths`: every
    constant path that is read, such as ("input", "order", "id"), with where its first read
    begins; `asked`: those that has() or optional syntax asks for, `bare`: those read without.
    """

    roots: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()
    computed: bool = False
    task_fields: frozenset[tuple[str, str]] = frozenset()
    guarded: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    root_positions: dict[str, Position] = {}
    task_positions: dict[str, Position] = {}
    paths: dict[Path, Position] = {}
    asked: frozenset[Path] = frozenset()
    bare: frozenset[Path] = frozenset()


NOTHING = References()


def merge(parts: Iterable[References]) -> References:
    """All reads of all parts. An id is guarded if every part that reads its output guards it."""
    found = list(parts)
    if not found:
        return NOTHING
    if len(found) == 1:
        return found[0]
    outputs = {id for part in found for id, field in part.task_fields if field == "output"}
    bare = {
        id
        for part in found
        for id, field in part.task_fields
        if field == "output" and id not in part.guarded
    }
    roots: dict[str, Position] = {}
    tasks: dict[str, Position] = {}
    paths: dict[Path, Position] = {}
    for part in reversed(found):
        roots |= part.root_positions
        tasks |= part.task_positions
        paths |= part.paths
    return References(
        roots=frozenset().union(*(part.roots for part in found)),
        tasks=frozenset().union(*(part.tasks for part in found)),
        computed=any(part.computed for part in found),
        task_fields=frozenset().union(*(part.task_fields for part in found)),
        guarded=frozenset(outputs - bare),
        secrets=frozenset().union(*(part.secrets for part in found)),
        root_positions=roots,
        task_positions=tasks,
        paths=paths,
        asked=frozenset().union(*(part.asked for part in found)),
        bare=frozenset().union(*(part.bare for part in found)),
    )


def path_of(node: Node) -> tuple[Ident | None, list[Step], int]:
    """The longest constant path up to `node`: its root, its steps, and from which step it is
    optional (a large number if it is not). The root is None if the path starts elsewhere."""
    steps: list[Step] = []
    optional_from = 0
    while True:
        if isinstance(node, Select):
            steps.append((node.field, node.at))
        elif isinstance(node, Index) and isinstance(node.key, Literal):
            if type(node.key.value) not in {str, int}:
                return None, [], 0
            steps.append((node.key.value, node.at))
        else:
            break
        optional_from = len(steps) if node.optional else optional_from
        node = node.target
    if not isinstance(node, Ident):
        return None, [], 0
    steps.reverse()
    return node, steps, len(steps) - optional_from if optional_from else 1_000_000


def proven(node: Node, truth: bool) -> frozenset[str]:
    """Ids of tasks that have an output whenever `node` evaluates to `truth`."""
    if isinstance(node, Has):
        root, steps, _ = path_of(node.select)
        if truth and root is not None and root.name == "tasks" and len(steps) >= 2:
            return frozenset({str(steps[0][0])} if steps[1][0] == "output" else ())
    elif isinstance(node, Unary) and node.op == "!":
        return proven(node.operand, not truth)
    elif isinstance(node, Logic) and (node.op == "&&") is truth:
        return frozenset().union(*(proven(item, truth) for item in node.items))
    elif isinstance(node, Binary) and node.op == ("==" if truth else "!="):
        root, steps, _ = path_of(node.left)
        status = len(steps) == 2 and steps[1][0] == "status"
        completed = isinstance(node.right, Literal) and node.right.value == "completed"
        if status and completed and root is not None and root.name == "tasks":
            return frozenset({str(steps[0][0])})
    return frozenset()


class Reads:
    """Collects the reads of one expression while it is compiled."""

    def __init__(self) -> None:
        self.roots: dict[str, int] = {}
        self.tasks: dict[str, int] = {}
        self.fields: set[tuple[str, str]] = set()
        self.bare: set[str] = set()
        self.secrets: set[str] = set()
        self.paths: dict[Path, int] = {}
        self.asked: set[Path] = set()
        self.unasked: set[Path] = set()
        self.computed = False
        self.guards: frozenset[str] = frozenset()

    def note(
        self, root: Ident, steps: list[Step], optional_from: int, *, presence: bool = False
    ) -> None:
        """One read of a path; `presence` when only the last step's being there is asked."""
        name = root.name
        if name in TYPE_NAMES or ".".join([name, *(str(key) for key, _ in steps)]) in TYPE_NAMES:
            return
        self.roots.setdefault(name, root.at)
        path = (name, *(key for key, _ in steps))
        self.paths.setdefault(path, root.at)
        (self.asked if presence or optional_from <= len(steps) else self.unasked).add(path)
        if name == "secrets" and steps and isinstance(steps[0][0], str):
            self.secrets.add(steps[0][0])
        if name != "tasks":
            return
        if not steps or not isinstance(steps[0][0], str):
            self.computed = True
            return
        id, at = steps[0]
        self.tasks.setdefault(id, at)
        if len(steps) == 1 and presence:
            return
        field = steps[1][0] if len(steps) > 1 else None
        self.fields.update((id, each) for each in ((field,) if isinstance(field, str) else _WHOLE))
        reads_output = not isinstance(field, str) or field == "output"
        asks = presence and len(steps) == 2
        if reads_output and not asks and optional_from > 1 and id not in self.guards:
            self.bare.add(id)

    def references(self, text: str) -> References:
        """What was noted, with offsets turned into lines and columns of `text`."""
        if not self.roots:
            return NOTHING
        outputs = {id for id, field in self.fields if field == "output"}
        return References(
            roots=frozenset(self.roots),
            tasks=frozenset(self.tasks),
            computed=self.computed,
            task_fields=frozenset(self.fields),
            guarded=frozenset(outputs - self.bare),
            secrets=frozenset(self.secrets),
            root_positions={name: position(text, at) for name, at in self.roots.items()},
            task_positions={id: position(text, at) for id, at in self.tasks.items()},
            paths={path: position(text, at) for path, at in self.paths.items()},
            asked=frozenset(self.asked),
            bare=frozenset(self.unasked),
        )
