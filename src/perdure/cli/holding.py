"""Who works on a run, in words and for programs: its worker, whether that is alive, or nobody."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from perdure.cli.output import took
from perdure.model.moments import moment

if TYPE_CHECKING:
    from perdure.cli.nodes import NodeBook
    from perdure.stores.answers import RunRow, WorkerSeen


def owner_of(row: RunRow, workers: Sequence[WorkerSeen]) -> WorkerSeen | None:
    """The worker that holds the run, where the store knows it."""
    return next((seen for seen in workers if seen.info.id == row.owner), None)


def holder(row: RunRow, book: NodeBook, owner: WorkerSeen | None) -> str:
    """`held by worker w (process 7 on host)`, or that nobody holds it."""
    if row.owner is not None:
        if owner is None:
            return "held by a worker that is gone: the next one takes it over"
        who = f"{owner.info.name} (process {owner.info.pid} on {owner.info.host})"
        gone = "" if owner.alive else ", which is gone: the next one takes it over"
        return f"held by worker {who}{gone}"
    is_due = due_since(row, datetime.now(UTC)) is not None
    if is_due or row.stalled is not None or book.having("pending"):
        return "held by no worker"
    return "held by no worker: it only waits"


def due_since(row: RunRow, now: datetime) -> datetime | None:
    """Since when a run that nobody has taken is due; None for any other."""
    if row.owner is not None or row.stalled is not None or row.status != "running":
        return None
    if row.ready_at > int(now.timestamp() * 1_000_000):
        return None
    return moment(row.ready_at)


def untaken(row: RunRow, since: datetime, now: datetime, alive: int) -> tuple[str, str]:
    """That nobody takes a run that is due, and what to do about it."""
    length = took((now - since).total_seconds())
    text = f"it is due, for {length}, and no worker has taken it"
    if alive:
        text += f" ({alive} {'is' if alive == 1 else 'are'} alive)"
    return text, f"start one that has {row.definition}: perdure worker FILE APP"


def owner_json(row: RunRow, owner: WorkerSeen | None) -> dict[str, Any] | None:
    """Who holds it, for programs."""
    if row.owner is None:
        return None
    known = {} if owner is None else {
        "name": owner.info.name, "host": owner.info.host, "pid": owner.info.pid,
    }  # fmt: skip
    return {"worker": row.owner, **known, "alive": owner is not None and owner.alive}
