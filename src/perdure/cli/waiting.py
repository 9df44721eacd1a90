"""What a run waits for: worked out from what is recorded of it and from its row in the store.

Every cause says since when, until when if that is known, and what to do about it if anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from perdure.cli.calls import GRACE, stalled, value_of
from perdure.cli.holding import due_since, untaken
from perdure.cli.node_view import NodeView
from perdure.cli.nodes import NodeBook
from perdure.cli.output import moment_near, took
from perdure.cli.reasons import reason
from perdure.kernel.code.stuck import ENDLESS
from perdure.model.moments import moment
from perdure.stores.answers import Mail, RunRow
from perdure.stores.rows import NEVER
from perdure.stores.takeover import ENDS_STALL

Kind = Literal[
    "stalled",
    "paused",
    "start",
    "signal",
    "time",
    "attempt",
    "retry",
    "worker",
    "mail",
    "child",
    "nothing",
]
Tell = Callable[..., str]

#: Messages that are named; of more it is only said how many there are.
NAMED: Final = 3
#: Ids of the messages by which an import pauses a run begin so.
IMPORTED: Final = "import-"


class Cause(msgspec.Struct, frozen=True):
    """One thing the run waits for. `node` "" = the run itself; `advice`: a command, or words."""

    kind: Kind
    text: str
    node: str = ""
    since: datetime | None = None
    until: datetime | None = None
    advice: str = ""


class Standing(msgspec.Struct, frozen=True):
    """All that is known of a run. `mail`: what it has not read; `attempts`: of nodes whose
    document says it, how many there are at most; `alive`: workers that are."""

    row: RunRow
    book: NodeBook
    mail: Sequence[Mail] = ()
    attempts: Mapping[str, int] = {}
    alive: int = 0


def causes(standing: Standing, now: datetime, tell: Tell) -> list[Cause]:
    """Why a run that has not ended does not go on, what stops all of it first. `tell`: makes a
    command of its words."""
    row, book = standing.row, standing.book
    name = f"{row.definition}/{row.id}"
    found: list[Cause] = []
    if row.stalled is not None:
        text = "it cannot go on: " + "\n".join(stalled(row.stalled))
        advice = f"mend that, then: {tell('unpause', name)}"
        if book.code:
            advice += f"; or end it without running its code: {tell('cancel', name)}"
        found.append(Cause("stalled", text, advice=advice))
    found += _pauses(standing, now, tell("unpause", name))
    if row.not_before and moment(row.not_before) > now and not _begun(book):
        until = moment(row.not_before)
        found.append(Cause("start", f"it begins at {moment_near(until)}", until=until))
    found += [_node(standing, view, now, tell) for view in book.having("waiting", "pending")]
    if standing.mail:
        found.append(Cause("mail", _unread(standing.mail)))
    since = due_since(row, now)
    if since is not None:
        text, advice = untaken(row, since, now, standing.alive)
        found.append(Cause("worker", text, since=since, advice=advice))
    if not found and book.code and row.owner is None:
        found.append(Cause("nothing", ENDLESS, advice=tell("cancel", name)))
    return found


def _pauses(standing: Standing, now: datetime, unpause: str) -> list[Cause]:
    told = [mail for mail in standing.mail if mail.kind in {"pause", "unpause"}]
    asked = told[-1] if told else None
    since = standing.book.paused
    if asked is not None and asked.kind == "pause" and asked.id.startswith(IMPORTED):
        advice = f"when no other store works on it: {unpause}"
        return [Cause("paused", "it is paused, since it was imported", advice=advice)]
    if since is None:
        if asked is not None and asked.kind == "pause":
            return [Cause("paused", "it is to pause, and has not read that yet", advice=unpause)]
        return []
    text = f"it is paused, for {_for(since, now)}"
    if asked is not None and asked.kind == "unpause":
        return [Cause("paused", f"{text}; it is to go on, and has not read that yet", since=since)]
    return [Cause("paused", text, since=since, advice=unpause)]


def _unread(mail: Sequence[Mail]) -> str:
    what = "1 message" if len(mail) == 1 else f"{len(mail)} messages"
    named = ", ".join(
        f"{one.kind} {one.name}" if one.kind not in ENDS_STALL and one.name else one.kind
        for one in mail[:NAMED]
    )
    more = ", …" if len(mail) > NAMED else ""
    return f"{what} sent to it {'is' if len(mail) == 1 else 'are'} not read ({named}{more})"


def _begun(book: NodeBook) -> bool:
    return any(view.attempt and view.status != "pending" for view in book.nodes.values())


def _node(standing: Standing, view: NodeView, now: datetime, tell: Tell) -> Cause:
    if view.status == "waiting":
        return _wait(standing, view, now, tell)
    since, row = view.since, standing.row
    if view.child is not None:
        length = "" if since is None else f", for {_for(since, now)}"
        end = "" if view.wake_at is None else f"; gives up at {_at(view.wake_at, now)}"
        what = f"waits for run {view.child}{length}{end}"
        return Cause("child", what, view.node, since, view.wake_at, tell("why", view.child))
    most = view.most or standing.attempts.get(view.node)
    attempt = f"attempt {max(view.attempt, 1)}{f' of {most}' if most else ''}"
    if since is not None and since > now:
        why = _last_error(view, ", since attempt {} failed: {}")
        text = f"{attempt} is due in {took((since - now).total_seconds())}{why}"
        return Cause("retry", text, view.node, None, since)
    rest = f"; {view.lost} time(s) its process died at it" if view.lost else ""
    rest += _last_error(view, "; attempt {} failed: {}")
    if row.owner is None:
        return Cause("attempt", f"{attempt} waits for a worker{rest}", view.node, since)
    length = "" if since is None else f" for {_for(since, now)}"
    held = "held or " if standing.book.paused is not None else ""
    return Cause("attempt", f"{attempt} is {held}under way{length}{rest}", view.node, since)


def _wait(standing: Standing, view: NodeView, now: datetime, tell: Tell) -> Cause:
    row, since = standing.row, view.since
    end = "" if view.wake_at is None else _at(view.wake_at, now)
    if not view.signal:
        text = f"{'may clean up' if view.node == GRACE else 'waits'} until {end}"
        return Cause("time", text, view.node, since, view.wake_at)
    length = "" if since is None else f", for {_for(since, now)}"
    text = f"waits for signal {view.signal}{length}{end and f'; gives up at {end}'}"
    sent = any(one.kind == "signal" and one.name == view.signal for one in standing.mail)
    # A second one would be kept for whatever waits for it next.
    name = f"{row.definition}/{row.id}"
    advice = "" if sent else tell("signal", name, view.signal, *value_of(view.node))
    return Cause("signal", text, view.node, since, view.wake_at, advice)


def _last_error(view: NodeView, form: str) -> str:
    if view.failure is None:
        return ""
    said = reason(str(view.failure["kind"]), str(view.failure["message"]))
    return form.format(view.attempt - 1, said)


def _at(time: datetime, now: datetime) -> str:
    left = (time - now).total_seconds()
    return moment_near(time) + (f" (in {took(left)})" if left > 0 else " (now)")


def _for(since: datetime, now: datetime) -> str:
    return took((now - since).total_seconds())


def next_due(row: RunRow, book: NodeBook) -> datetime | None:
    """When the run goes on by itself at the latest; None: only when somebody acts, or at work."""
    if row.owner is None:
        return moment(row.ready_at) if row.ready_at < NEVER else None
    times = [view.wake_at for view in book.having("waiting") if view.wake_at is not None]
    times += [view.since for view in book.having("pending") if view.since is not None]
    if book.deadline is not None and not book.undoing:
        times.append(book.deadline)
    return min(times, default=None)
