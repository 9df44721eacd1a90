"""What runs are told of one another, once they asked by what rides on a row (rows.ChildStart,
rows.ChildCancel): the same messages, with the same ids, in every store.

The ids are made of the call's task, so that nothing is told twice; what was answered stands in the
mailbox of the run that asked, for good.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from perdure.model.status import RunStatus
from perdure.stores.rows import NEVER, ChildStart, Message, NewRun

STARTED: Final = "child-started"
FINISHED: Final = "child-finished"
_NULL: Final = Raw(b"null")


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A call that waits for a run's end: whose it is, and whether the run was made for it."""

    parent: bytes
    task: str
    node: str
    created: bool


class StartedBody(msgspec.Struct, frozen=True):
    """Of "child-started". `key`: of the run that was made for the call, in hexadecimal."""

    task: str
    node: str
    created: bool
    typed: bool = False
    key: str = ""


class FinishedBody(msgspec.Struct, frozen=True):
    """Of "child-finished". `output` is null unless completed, `failure` if completed."""

    task: str
    node: str
    status: RunStatus
    output: Raw = _NULL
    failure: Raw = _NULL


def due_by(run: NewRun, now: int) -> NewRun:
    """A child is due when it is made, by the store's clock: the clock of who made it may differ."""
    return msgspec.structs.replace(run, ready_at=now) if now < run.ready_at < NEVER else run


def started_id(task: str) -> str:
    """The id of the message that says that a call's run is there."""
    return f"child:{task}:started"


def finished_id(task: str) -> str:
    """The id of the message that says how it ended."""
    return f"child:{task}:finished"


def started_message(to: tuple[str, str], start: ChildStart, created: bool) -> Message:
    """To the run (definition, id) whose call asked."""
    key = start.run.key.hex() if created and start.run is not None else ""
    body = msgspec.json.encode(StartedBody(start.task, start.node, created, start.typed, key))
    return Message(*to, started_id(start.task), STARTED, start.node, body)


def finished_message(
    to: tuple[str, str], task: str, node: str, status: RunStatus, output: bytes | None,
    failure: bytes | None,
) -> Message:  # fmt: skip
    """To the run (definition, id) whose call waits. Output and failure as JSON text."""
    made = FinishedBody(task, node, status, Raw(output or _NULL), Raw(failure or _NULL))
    return Message(*to, finished_id(task), FINISHED, node, msgspec.json.encode(made))


def refused_message(to: tuple[str, str], start: ChildStart) -> Message:
    """To the run (definition, id) whose call asked for a run that nobody can make."""
    return finished_message(to, start.task, start.node, "failed", None, start.refusal)


def cancel_message(to: tuple[str, str], task: str, reason: str) -> Message:
    """To the run (definition, id) that nobody waits for any more."""
    return Message(*to, f"parent:{task}:cancel", "cancel", "", msgspec.json.encode(reason))


def was_created(body: bytes | None) -> bool:
    """What a message said that is in the mailbox."""
    return msgspec.json.decode(body or b"", type=StartedBody).created


def made_key(body: bytes | None) -> bytes:
    """Of the run that was made, by such a message; empty where it was there before."""
    return bytes.fromhex(msgspec.json.decode(body or b"", type=StartedBody).key)
