"""Nodes of a run as people see them, folded from the records of its history.

One fold for all who show a run: `run` while it happens, `show` afterwards, the demo's account.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from perdure.cli.output import took

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class NodeView(msgspec.Struct):
    """A node that was reached. `attempt` counts from 1, 0 = none was needed. `since`: when the
    attempt began, or is due. `lost`: how often a process died while it was under way."""

    node: str
    status: str
    attempt: int = 0
    since: datetime | None = None
    ended: datetime | None = None
    input: Any = None
    output: Any = None
    failure: Mapping[str, Any] | None = None
    branches: list[str] | None = None
    lost: int = 0

    @property
    def seconds(self) -> float | None:
        """How long the last attempt took, where it has ended."""
        if self.since is None or self.ended is None:
            return None
        return (self.ended - self.since).total_seconds()


class Change(msgspec.Struct, frozen=True):
    """One thing that happened to a node, in words."""

    time: datetime
    node: str
    text: str


class NodeBook:
    """`nodes` by id, in the order in which they were reached."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}

    def having(self, status: str) -> list[NodeView]:
        """The nodes of this status."""
        return [view for view in self.nodes.values() if view.status == status]

    def take(self, record: Mapping[str, Any]) -> list[Change]:
        """Fold one record of a history; what it changed, in words."""
        fold = _FOLDS.get(record["do"])
        return [] if fold is None else fold(self, record)

    def restarted(self, time: datetime) -> None:
        """Another process goes on: what was under way begins again now."""
        for view in self.having("pending"):
            if view.since is None or view.since < time:
                view.since = time

    # ------------------------------------------------------------------ one record each

    def _created(self, record: Mapping[str, Any]) -> list[Change]:
        branches = record.get("branches")
        view = NodeView(record["node"], record["status"], input=record.get("input"))
        view.output, view.failure = record.get("output"), record.get("failure")
        view.branches = None if branches is None else list(branches)
        self.nodes[view.node] = view
        if view.status == "pending":
            return []
        view.ended = record["time"]
        if view.status == "failed":
            return [_change(record, f"failed: {_reason(view.failure)}")]
        if view.branches is None:
            return [_change(record, view.status)]
        return [_change(record, f"chose {', '.join(view.branches) or 'nothing'}")]

    def _dispatched(self, record: Mapping[str, Any]) -> list[Change]:
        view = self.nodes[record["node"]]
        view.attempt = record["attempt"]
        view.since = _due(record)
        return [_change(record, f"started (attempt {view.attempt})")]

    def _completed(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._ended(record, "completed")
        view.output = record.get("output")
        return [_change(record, f"completed (attempt {view.attempt}{_took(view)})")]

    def _failed(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._ended(record, "failed")
        view.failure = record["failure"]
        return [_change(record, f"failed (attempt {view.attempt}): {_reason(view.failure)}")]

    def _retried(self, record: Mapping[str, Any]) -> list[Change]:
        view = self.nodes[record["node"]]
        view.attempt = record["attempt"] + 1
        view.failure = record["failure"]
        view.since = _due(record)
        wait = took((view.since - record["time"]).total_seconds())
        return [
            _change(
                record,
                f"attempt {record['attempt']} failed: {_reason(view.failure)}; "
                f"attempt {view.attempt} in {wait}",
            )
        ]

    def _claimed(self, record: Mapping[str, Any]) -> list[Change]:
        for view in self.having("pending"):
            view.lost += 1
        self.restarted(record["time"])
        return []

    def _ended(self, record: Mapping[str, Any], status: str) -> NodeView:
        view = self.nodes[record["node"]]
        view.status, view.ended, view.attempt = status, record["time"], record["attempt"]
        return view


_FOLDS: Final = {
    "CreateTask": NodeBook._created,
    "DispatchTask": NodeBook._dispatched,
    "CompleteTask": NodeBook._completed,
    "FailTask": NodeBook._failed,
    "RetryTask": NodeBook._retried,
    "Claimed": NodeBook._claimed,
}


def _change(record: Mapping[str, Any], text: str) -> Change:
    return Change(record["time"], record["node"], text)


def _due(record: Mapping[str, Any]) -> datetime:
    due: int = record.get("not_before", 0)
    time: datetime = record["time"]
    return max(time, _EPOCH + timedelta(microseconds=due)) if due else time


def _took(view: NodeView) -> str:
    return "" if view.seconds is None else f", {took(view.seconds)}"


def _reason(failure: Mapping[str, Any] | None) -> str:
    return "no reason recorded" if failure is None else reason(failure["kind"], failure["message"])


def reason(kind: str, message: str) -> str:
    """A failure in words: its kind, where the message does not begin with it, and message."""
    text = message.strip() or kind
    return text if text.startswith((kind, f"the {kind}")) else f"{kind}: {text}"
