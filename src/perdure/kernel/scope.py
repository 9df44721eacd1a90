"""What templates can read: input, config, tasks.<id>, system. Filled in only as they ask.

`tasks.<id>` is there for resolved nodes: `.status` always, `.output` when completed. Reading
more raises a LookupError whose text says why it is not there (D-14).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from perdure.kernel.run import NodeState

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    return "was skipped" if status == "skipped" else "failed"


class TaskViews(dict[str, Any]):
    """`tasks`: views of completed nodes are items; the rest is worked out when asked for.

    A dict, so that reading a completed node costs a dict's lookup.
    """

    __slots__ = ("_nodes",)

    def __init__(self, nodes: Mapping[str, NodeState]) -> None:
        super().__init__()
        self._nodes = nodes

    def __missing__(self, node: str) -> Any:
        state = self._nodes.get(node)
        if state is None:
            raise LookupError(f"node {node} was not reached, so tasks.{node} is not there")
        if state.status in ("skipped", "failed"):
            return Unfinished(node, state, None)
        if state.status == "completed":
            raise LookupError(f"the output of node {node} was not loaded")
        raise LookupError(f"node {node} has not ended yet, so tasks.{node} is not there")

    def __contains__(self, node: object) -> bool:
        if dict.__contains__(self, node):
            return True
        state = self._nodes.get(node)  # type: ignore[call-overload]
        return state is not None and state.status in ("skipped", "failed")

    def get(self, node: str, default: Any = None) -> Any:
        """As `[]`, with a default for what is not there."""
        return self[node] if node in self else default  # noqa: SIM401  get is this


class SystemView(dict[str, Any]):
    """`system`: run_id, workflow, version, and `now`, the time of the event being applied."""

    __slots__ = ("at",)

    def __init__(self, run_id: str, workflow: str, version: str) -> None:
        super().__init__(run_id=run_id, workflow=workflow, version=version)
        self.at = 0

    def __missing__(self, field: str) -> Any:
        if field == "now":
            return _EPOCH + timedelta(microseconds=self.at)
        raise KeyError(field)

    def __contains__(self, field: object) -> bool:
        return field == "now" or dict.__contains__(self, field)
