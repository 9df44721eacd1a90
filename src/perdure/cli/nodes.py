"""Nodes of a run as people see them, folded from the records of its history.

One fold for all who show a run: `run` while it happens, `watch` and `show` afterwards, `why`, the
demo's account.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from perdure.cli.calls import given_up, value_of
from perdure.cli.node_view import Change, NodeView
from perdure.cli.output import took
from perdure.cli.reasons import reason, run_reason
from perdure.model.moments import moment

#: Why a run undoes what it did.
_REASONS: Final = {"failure": "it failed", "timeout": "its time is over", "cancel": "canceled"}


class NodeBook:
    """`nodes` by id, in the order in which they were reached; `paused`: since when; `kept`: the
    signals that no node took yet, by message id, as (name, since). `how`: the command that sends
    a signal, by its name and maybe what stands for a value, for what is told of a node that waits
    for one."""

    def __init__(self, how: Callable[..., str] | None = None) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.paused: datetime | None = None
        self.kept: dict[str, tuple[str, datetime]] = {}
        self.deadline: datetime | None = None
        #: Why what the run did is undone; "" = it is not.
        self.undoing = ""
        #: Whether the run is one of code, not of a document.
        self.code = False
        #: Where in the code an attempt (node, number) raised, if this process saw it.
        self.places: dict[tuple[str, int], str] = {}
        self._how = how

    def having(self, *statuses: str) -> list[NodeView]:
        """The nodes of these statuses."""
        return [view for view in self.nodes.values() if view.status in statuses]

    def take(self, record: Mapping[str, Any]) -> list[Change]:
        """Fold one record of a history; what it changed, in words."""
        fold = _FOLDS.get(record["do"])
        return [] if fold is None else fold(self, record)

    def restarted(self, time: datetime) -> None:
        """Another process goes on: what was under way begins again now. Not a run that is asked
        for: that goes its own way."""
        for view in self.having("pending"):
            if view.child is None and (view.since is None or view.since < time):
                view.since = time

    def waiting(self, view: NodeView) -> str:
        """What a node waits for, and how it is told."""
        if not view.signal or self._how is None:
            return view.waits
        return f"{view.waits} ({self._how(view.signal, *value_of(view.node))})"

    def _view(self, node: str) -> NodeView:
        """The node's view; a new one where what was recorded of it before is not known here."""
        return self.nodes.setdefault(node, NodeView(node, "pending"))

    # ------------------------------------------------------------------ one record each

    def _opened(self, record: Mapping[str, Any]) -> list[Change]:
        self.deadline = _time(record.get("deadline"))
        return []

    def _begun(self, record: Mapping[str, Any]) -> list[Change]:
        self.code = True
        self.deadline = _time(record.get("deadline")) or self.deadline
        return []

    def _continued(self, record: Mapping[str, Any]) -> list[Change]:
        self.nodes.clear()
        self.kept.clear()
        self._opened(record)
        if record.get("paused"):  # the history may begin with it
            self.paused = self.paused or record["time"]
        return [_change(record, "goes on as new: what it did before is forgotten")]

    def _stopping(self, record: Mapping[str, Any]) -> list[Change]:
        return [_change(record, f"the run is to end: {_reason(record['failure'])}")]

    def _patched(self, record: Mapping[str, Any]) -> list[Change]:
        return [_change(record, f"takes the new way of patched {record['id']!r}")]

    def _created(self, record: Mapping[str, Any]) -> list[Change]:
        branches = record.get("branches")
        view = NodeView(record["node"], record["status"], input=record.get("input"))
        view.output, view.failure = record.get("output"), record.get("failure")
        view.branches = None if branches is None else list(branches)
        self.nodes[view.node] = view
        if view.status == "pending":
            return []
        if view.status == "waiting":
            view.since, view.wake_at = record["time"], _time(record.get("wake_at"))
            view.signal = record.get("awaited_signal")
            return [_change(record, self.waiting(view))]
        view.ended = record["time"]
        if view.status == "failed":
            return [_change(record, f"failed: {_reason(view.failure)}")]
        if view.branches is None:
            return [_change(record, view.status)]
        return [_change(record, f"chose {', '.join(view.branches) or 'nothing'}")]

    def _dispatched(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._view(record["node"])
        view.attempt = record["attempt"]
        view.most = record.get("attempts")
        view.since = _due(record)
        return [_change(record, f"started (attempt {view.attempt})")]

    def _child_asked(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._view(record["node"])
        view.since, view.child = record["time"], f"{record['definition']}/{record['id']}"
        view.wake_at = _time(record.get("wake_at"))
        again = f" (attempt {view.attempt})" if view.attempt > 1 else ""
        return [_change(record, f"asks for run {view.child}{again}")]

    def _child_found(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._view(record["node"])
        view.made = record["created"]
        said = "started" if view.made else "was there before, and is joined"
        return [_change(record, f"run {view.child} {said}")]

    def _completed(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._ended(record, "completed")
        view.output = record.get("output")
        if view.child is not None:
            return [_change(record, f"completed{_waited(view)}")]
        return [_change(record, f"completed (attempt {view.attempt}{_took(view)})")]

    def _failed(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._ended(record, "failed")
        why = self._erred(view, record)
        if view.child is not None:
            return [_change(record, f"failed{_waited(view)}: {why}")]
        return [_change(record, f"failed (attempt {view.attempt}): {why}")]

    def _retried(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._view(record["node"])
        view.attempt, view.child = record["attempt"] + 1, None
        why = self._erred(view, record)
        view.since = _due(record)
        wait = took((view.since - record["time"]).total_seconds())
        return [
            _change(
                record,
                f"attempt {record['attempt']} failed: {why}; attempt {view.attempt} in {wait}",
            )
        ]

    def _resolved(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._view(record["node"])
        view.status, view.ended = record["status"], record["time"]
        view.output, view.failure = record.get("output"), record.get("failure")
        if view.status == "canceled" and (said := given_up(view.node, view.failure)):
            return [_change(record, said)]
        if view.failure is not None:
            return [_change(record, f"{view.status}: {_reason(view.failure)}")]
        got = f"got signal {view.signal}" if view.signal and view.status == "completed" else ""
        return [_change(record, f"{got or view.status}{_waited(view)}")]

    def _kept(self, record: Mapping[str, Any]) -> list[Change]:
        self.kept[record["signal"]] = (record["name"], record["time"])
        return [_change(record, f"signal {record['name']} came; it is kept until a node waits")]

    def _consumed(self, record: Mapping[str, Any]) -> list[Change]:
        self.kept.pop(record["signal"], None)
        return []

    def _canceled(self, record: Mapping[str, Any]) -> list[Change]:
        changes = []
        for node in record.get("nodes", ()):
            view = self._view(node)
            view.status, view.ended = record.get("status", "failed"), record["time"]
            view.failure = record["failure"]
            text = given_up(node, view.failure) or f"{view.status}: {_reason(view.failure)}"
            changes.append(Change(record["time"], node, text))
        return changes

    def _undoes(self, record: Mapping[str, Any]) -> list[Change]:
        why = _REASONS.get(record["reason"], record["reason"])
        failure = record.get("failure") or {"kind": why, "message": why}
        details = failure.get("details")
        self.undoing = run_reason(str(failure["kind"]), str(failure["message"]), details)
        changes = [_change(record, f"{why}: what was done is undone, the last first")]
        if unknown := record.get("unknown"):
            changes.append(_change(record, f"nobody knows what {', '.join(unknown)} did"))
        return changes

    def _compensated(self, record: Mapping[str, Any]) -> list[Change]:
        view = self._view(record["node"])
        view.status = "compensated"
        return [_change(record, "undone")]

    def _reopened(self, record: Mapping[str, Any]) -> list[Change]:
        reset = record.get("reset", ())
        for node in reset:
            self.nodes.pop(node, None)
        self.deadline, self.undoing = _time(record.get("deadline")), ""
        return [_change(record, f"goes on by a retry; begins again: {', '.join(reset) or 'none'}")]

    def _paused(self, record: Mapping[str, Any]) -> list[Change]:
        paused = record.get("paused", False)
        self.paused = record["time"] if paused else None
        return [_change(record, "paused: nothing new is started" if paused else "unpaused")]

    def _refused(self, record: Mapping[str, Any]) -> list[Change]:
        return [_change(record, f"a message was refused: {record.get('error', '')}")]

    def _claimed(self, record: Mapping[str, Any]) -> list[Change]:
        for view in self.having("pending"):
            if view.child is None and view.since is not None and view.since <= record["time"]:
                view.lost += 1
        self.restarted(record["time"])
        return []

    def _erred(self, view: NodeView, record: Mapping[str, Any]) -> str:
        """Note the failure of an attempt; in words, with its place in the code."""
        view.failure = record["failure"]
        view.errors.append((record["attempt"], record["failure"]))
        place = self.places.pop((view.node, record["attempt"]), "")
        return _reason(view.failure) + (f" ({place})" if place else "")

    def _ended(self, record: Mapping[str, Any], status: str) -> NodeView:
        view = self._view(record["node"])
        view.status, view.ended = status, record["time"]
        first = view.child is not None and record["attempt"] == 1
        view.attempt = 0 if first else record["attempt"]
        return view


_FOLDS: Final[Mapping[str, Callable[[NodeBook, Mapping[str, Any]], list[Change]]]] = {
    "OpenRun": NodeBook._opened,
    "BeginRun": NodeBook._begun,
    "Continued": NodeBook._continued,
    "RequestStop": NodeBook._stopping,
    "BeginCompensation": NodeBook._undoes,
    "CompensateTask": NodeBook._compensated,
    "Patched": NodeBook._patched,
    "CreateTask": NodeBook._created,
    "DispatchTask": NodeBook._dispatched,
    "StartChild": NodeBook._child_asked,
    "ChildFound": NodeBook._child_found,
    "CompleteTask": NodeBook._completed,
    "FailTask": NodeBook._failed,
    "RetryTask": NodeBook._retried,
    "ResolveWait": NodeBook._resolved,
    "BufferSignal": NodeBook._kept,
    "ConsumeSignal": NodeBook._consumed,
    "CancelTasks": NodeBook._canceled,
    "ReopenRun": NodeBook._reopened,
    "SetPaused": NodeBook._paused,
    "Refused": NodeBook._refused,
    "Claimed": NodeBook._claimed,
}


def _change(record: Mapping[str, Any], text: str) -> Change:
    return Change(record["time"], record.get("node", ""), text)


def _time(microseconds: int | None) -> datetime | None:
    if microseconds is None:
        return None
    try:
        return moment(microseconds)
    except OverflowError:  # thousands of years from now: no calendar has it
        return datetime.max.replace(tzinfo=UTC)


def _due(record: Mapping[str, Any]) -> datetime:
    time: datetime = record["time"]
    due = _time(record.get("not_before") or None)
    return time if due is None else max(time, due)


def _took(view: NodeView) -> str:
    return "" if view.seconds is None else f", {took(view.seconds)}"


def _waited(view: NodeView) -> str:
    return "" if view.seconds is None else f" (after {took(view.seconds)})"


def _reason(failure: Mapping[str, Any] | None) -> str:
    return "no reason recorded" if failure is None else reason(failure["kind"], failure["message"])
