"""Mailbox: a live run's view of its numbered mail, and what each message means to its machine.

Messages reach a run by several ways (loaded with it, posted in this process, fetched after a
hint) and in any order; each is handed on once, in the order of their numbers. Which of them the
run has applied is the LiveRun's to say, in its journal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from perdure.kernel.events import (
    ChildFinished,
    ChildStarted,
    RunCancelled,
    RunPaused,
    RunUnpaused,
    SignalReceived,
)
from perdure.model.errors import InvalidRequest
from perdure.model.failure import FailureRecord
from perdure.stores.answers import Mail
from perdure.stores.children import FINISHED, STARTED, FinishedBody, StartedBody

T = TypeVar("T")


class Mailbox:
    """`taken`: the number of the last message handed on. `known`: the highest heard of.
    `fetching`: somebody is reading what is missing."""

    __slots__ = ("_early", "fetching", "known", "taken")

    def __init__(self, read: int) -> None:
        self.taken = read
        self.known = read
        self.fetching = False
        #: Messages that came before others with lower numbers.
        self._early: dict[int, Mail] = {}

    @property
    def missing(self) -> bool:
        """Whether messages are known of that are not here: they are to be fetched."""
        return self.taken < self.known

    def arrived(self, messages: Iterable[Mail]) -> list[Mail]:
        """Take messages; those whose turn it is now, in order."""
        for mail in messages:
            self.known = max(self.known, mail.n)
            if mail.n > self.taken:
                self._early[mail.n] = mail
        turn = []
        while (next_one := self._early.pop(self.taken + 1, None)) is not None:
            self.taken += 1
            turn.append(next_one)
        return turn


def event_of(mail: Mail) -> Any:
    """The event a message is to the machine. Raises InvalidRequest for one that means nothing to
    this version."""
    make = _MEANINGS.get(mail.kind)
    if make is None:
        raise InvalidRequest(f"a message of kind {mail.kind!r} is not known to this version")
    return make(mail)


def _signal(mail: Mail) -> SignalReceived:
    if mail.body is not None:
        try:  # it goes into the journal as it is, and one that is not JSON would spoil the row
            msgspec.json.decode(mail.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"the value of a signal must be JSON: {error}") from None
    return SignalReceived(mail.name, mail.id, None if mail.body is None else Raw(mail.body))


def _cancel(mail: Mail) -> RunCancelled:
    try:
        reason = "" if mail.body is None else msgspec.json.decode(mail.body, type=str)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"the reason of a cancel must be a text in JSON: {error}") from None
    return RunCancelled(reason)


def _started(mail: Mail) -> ChildStarted:
    said = _body(mail, StartedBody)
    return ChildStarted(said.task, said.node, said.created, said.typed)


def _finished(mail: Mail) -> ChildFinished:
    said = _body(mail, FinishedBody)
    failure: FailureRecord | None = _read(bytes(said.failure), FailureRecord | None)
    completed = said.status == "completed"
    return ChildFinished(
        said.task, said.node, said.status, said.output if completed else None, failure
    )


def _body(mail: Mail, kind: type[T]) -> T:
    made: T = _read(mail.body or b"", kind)
    return made


def _read(data: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"what is told of a child cannot be read: {error}") from None


_MEANINGS: Final[Mapping[str, Callable[[Mail], Any]]] = {
    "signal": _signal,
    "cancel": _cancel,
    STARTED: _started,
    FINISHED: _finished,
    "pause": lambda mail: RunPaused(),
    "unpause": lambda mail: RunUnpaused(),
}
