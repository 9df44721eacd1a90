"""What a run waits for: worked out from what is recorded of it and from its row in the store.

Every cause says since when, until when if that is known, and what to do about it if anything.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

import msgspec

from perdure.cli.nodes import NodeBook, NodeView, reason
from perdure.cli.output import moment_near, took
from perdure.client.run import time_of
from perdure.stores.port import NEVER, RunRow

Kind = Literal["stalled", "paused", "start", "signal", "time", "attempt", "retry", "worker", "mail"]
Tell = Callable[..., str]


class Cause(msgspec.Struct, frozen=True):
    """One thing the run waits for. `node` "" = the run itself; `advice`: a command, or words."""

    kind: Kind
    text: str
    node: str = ""
    since: datetime | None = None
    until: datetime | None = None
    advice: str = ""


def causes(row: RunRow, book: NodeBook, unread: int, now: datetime, tell: Tell) -> list[Cause]:
    """Why a run that has not ended does not go on, what stops all of it first. `unread`: how many
    messages it has not read; `tell`: makes a command of its words."""
    name = f"{row.definition}/{row.id}"
    found: list[Cause] = []
    if row.stalled is not None:
        found.append(
            Cause("stalled", f"it cannot go on: {row.stalled}",
                  advice=f"mend that, then: {tell('unpause', name)}")
        )  # fmt: skip
    if book.paused is not None:
        text = f"it is paused, for {_for(book.paused, now)}"
        found.append(Cause("paused", text, since=book.paused, advice=tell("unpause", name)))
    if row.not_before and time_of(row.not_before) > now and not _begun(book):
        until = time_of(row.not_before)
        found.append(Cause("start", f"it begins at {moment_near(until)}", until=until))
    found += [_node(row, book, view, now, tell) for view in book.having("waiting", "pending")]
    if unread:
        what = "1 message" if unread == 1 else f"{unread} messages"
        found.append(Cause("mail", f"{what} sent to it {'is' if unread == 1 else 'are'} not read"))
    if row.owner is None and row.stalled is None and row.ready_at <= _microseconds(now):
        since = time_of(row.ready_at)
        text = f"it is due, for {_for(since, now)}, and no worker has taken it"
        advice = f"start one that has {row.definition}: perdure worker FILE APP"
        found.append(Cause("worker", text, since=since, advice=advice))
    return found


def _begun(book: NodeBook) -> bool:
    return any(view.attempt and view.status != "pending" for view in book.nodes.values())


def _node(row: RunRow, book: NodeBook, view: NodeView, now: datetime, tell: Tell) -> Cause:
    since = view.since
    if view.status == "waiting":
        end = "" if view.wake_at is None else _at(view.wake_at, now)
        if not view.signal:
            return Cause("time", f"waits until {end}", view.node, since, view.wake_at)
        length = "" if since is None else f", for {_for(since, now)}"
        text = f"waits for signal {view.signal}{length}{end and f'; gives up at {end}'}"
        advice = tell("signal", f"{row.definition}/{row.id}", view.signal)
        return Cause("signal", text, view.node, since, view.wake_at, advice)
    if since is not None and since > now:
        why = ""
        if view.failure is not None:
            said = reason(str(view.failure["kind"]), str(view.failure["message"]))
            why = f", since attempt {view.attempt - 1} failed: {said}"
        text = f"attempt {view.attempt} is due in {took((since - now).total_seconds())}{why}"
        return Cause("retry", text, view.node, None, since)
    lost = f"; {view.lost} time(s) its process died at it" if view.lost else ""
    if row.owner is None:
        text = f"attempt {max(view.attempt, 1)} waits for a worker{lost}"
        return Cause("attempt", text, view.node, since)
    length = "" if since is None else f" for {_for(since, now)}"
    held = book.paused is not None
    text = f"attempt {view.attempt} is {'held or ' if held else ''}under way{length}{lost}"
    return Cause("attempt", text, view.node, since)


def _at(time: datetime, now: datetime) -> str:
    left = (time - now).total_seconds()
    return moment_near(time) + (f" (in {took(left)})" if left > 0 else " (now)")


def _for(since: datetime, now: datetime) -> str:
    return took((now - since).total_seconds())


def next_due(row: RunRow, book: NodeBook) -> datetime | None:
    """When the run goes on by itself at the latest; None: only when somebody acts, or at work."""
    times = [view.wake_at for view in book.having("waiting") if view.wake_at is not None]
    times += [view.since for view in book.having("pending") if view.since is not None]
    if book.deadline is not None:
        times.append(book.deadline)
    if row.owner is None and row.ready_at < NEVER:
        times.append(time_of(row.ready_at))
    return min(times, default=None)


def _microseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000)
