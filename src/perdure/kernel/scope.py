"""What templates can read: input, config, tasks.<id>, system. Filled in only as they ask.

`tasks.<id>` is there for resolved nodes: `.status` always, `.output` when completed. Reading
more raises a LookupError whose text says why it is not there (D-14).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perdure.kernel.run import NodeState
from perdure.model.moments import moment

#: Resolved, with nothing to read.
_WITHOUT_OUTPUT = ("skipped", "failed", "canceled", "compensated")


class Unfinished(Mapping[str, Any]):
    """`tasks.<id>` of a node that has no output: only its status can be read."""

    __slots__ = ("_node", "_values")

    def __init__(self, node: str, state: NodeState, error: str | None) -> None:
        self._node = node
        self._values: dict[str, Any] = {"status": state.status}
        if error is not None:
            self._values["error"] = error

    def __getitem__(self, field: str) -> Any:
        if field in self._values:
            return self._values[field]
        if field == "output":
            raise LookupError(
                f"node {self._node} has no output: it {_ended(self._values['status'])}; ask "
                f"with has(tasks.{self._node}.output) or tasks.{self._node}.status"
            )
        raise KeyError(field)

    def __contains__(self, field: object) -> bool:
        return field in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _ended(status: str) -> str:
    return "failed" if status == "failed" else f"was {status}"


class TaskViews(Mapping[str, Any]):
    """`tasks` where some node that may be read has no output, or any node may be read.

    The resolved nodes in the order in which they were reached; asking for another says why it is
    not there. `views`: what completed nodes show, of those whose outputs are in memory.
    """

    __slots__ = ("_nodes", "_views")

    def __init__(self, views: Mapping[str, Any], nodes: Mapping[str, NodeState]) -> None:
        self._views = views
        self._nodes = nodes

    def __getitem__(self, node: str) -> Any:
        if node in self._views:
            return self._views[node]
        state = self._nodes.get(node)
        if state is None:
            raise LookupError(f"node {node} was not reached, so tasks.{node} is not there")
        if state.status in _WITHOUT_OUTPUT:
            return Unfinished(node, state, None)
        if state.status == "completed":
            raise LookupError(f"the output of node {node} was not loaded")
        raise LookupError(f"node {node} has not ended yet, so tasks.{node} is not there")

    def __contains__(self, node: object) -> bool:
        if node in self._views:
            return True
        state = self._nodes.get(node)  # type: ignore[call-overload]
        return state is not None and state.status in _WITHOUT_OUTPUT

    def __iter__(self) -> Iterator[str]:
        return (node for node in self._nodes if node in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class SystemView(dict[str, Any]):
    """`system`: run_id, workflow, version, and `now`, the time of the event being applied."""

    __slots__ = ("at",)

    def __init__(self, run_id: str, workflow: str, version: str) -> None:
        super().__init__(run_id=run_id, workflow=workflow, version=version)
        self.at = 0

    def __missing__(self, field: str) -> Any:
        if field == "now":
            return moment(self.at)
        raise KeyError(field)

    def __contains__(self, field: object) -> bool:
        return field == "now" or dict.__contains__(self, field)
