"""Births: children that this worker owns from the moment at which their row is written.

Whether a child has to be made is the store's to say, and it says so to the run that asked, with
the key of the run that it made. Until this is heard the child waits here and does nothing: what is
heard is durable. One that was there already, or that nobody is told of within two beats, is
forgotten; if it is this worker's all the same, the store has it held by nobody, and it is given
back as any such run is. A process that dies before it hears leaves an owner without a lease, as
with any other run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from perdure.engine.runs.holder import MOST_LIVE
from perdure.engine.runs.starting import Beginning
from perdure.model.definition import Definition
from perdure.stores.children import STARTED, made_key, started_id
from perdure.stores.rows import Message

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder

#: Beats after which nothing more is expected.
PATIENCE: Final = 2


class Expected(msgspec.Struct):
    """A child that may be made. `beats`: how many there were since."""

    beginning: Beginning
    beats: int = 0


class Births:
    """By the id of the message that says whether it was made. `born` takes one into memory.
    `beats`: whether this worker beats; else nothing would give back what it never hears of.
    `hears`: whether the store tells this process what it posts; else no child would be born before
    it was given back."""

    def __init__(self, holder: Holder, born: Callable[[Beginning], None], *, beats: bool) -> None:
        self._holder = holder
        self._born = born
        self._beats = beats
        self.hears = False
        self._expected: dict[str, list[Expected]] = {}

    def takes(self, definition: Definition[object, object]) -> bool:
        """Whether a child of this definition is to be this worker's."""
        holder = self._holder
        room = len(holder.live) + len(self._expected) < MOST_LIVE
        there = self._beats and self.hears and room
        return there and holder.may_claim and holder.served.serves(definition)

    def expect(self, call: str, beginning: Beginning) -> None:
        """This call asks for the child. It may have asked before, with another key, and which of
        the rows was the first to be written is not known yet."""
        self._holder.in_hand.add(beginning.row.key)
        self._expected.setdefault(started_id(call), []).append(Expected(beginning))

    def heard(self, message: Message) -> None:
        """Something is in a mailbox."""
        if message.kind != STARTED or message.id not in self._expected:
            return
        holder, made = self._holder, made_key(message.body)
        for one in self._expected.pop(message.id):
            row = one.beginning.row
            mine = row.owner == holder.worker and not holder.struck_off and not holder.stopping
            if mine and made == row.key:
                holder.in_hand.discard(row.key)
                self._born(one.beginning)
            else:
                self._forget(one)

    def beat(self) -> None:
        """What was not heard of for so long is not waited for."""
        for id, expected in list(self._expected.items()):
            for one in expected:
                one.beats += 1
            if expected[-1].beats > PATIENCE:
                del self._expected[id]
                for one in expected:
                    self._forget(one)

    def close(self) -> None:
        """Nothing is expected any more."""
        for expected in self._expected.values():
            for one in expected:
                self._forget(one)
        self._expected.clear()

    def _forget(self, one: Expected) -> None:
        self._holder.in_hand.discard(one.beginning.row.key)
        one.beginning.close()
