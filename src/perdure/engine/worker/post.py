"""Post: messages that this process puts into mailboxes. Runs that are in memory here take theirs at
once, and nobody has to ask the store what came."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.stores.answers import Mail, Posted
from perdure.stores.rows import Message

if TYPE_CHECKING:
    from perdure.engine.worker.shell import Shell


class Post:
    """An engine's."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        #: Answers to what was posted here in this turn of the loop.
        self._delivered: dict[int, Sequence[Posted]] = {}

    async def post(self, messages: Sequence[Message]) -> Sequence[Posted]:
        """Into the mailboxes; runs that are in memory here take theirs at once."""
        answers = await self._shell.store.post(messages)
        self._deliver(messages, answers)
        # The store tells of it, too, by a call that was made soon before this one.
        self._delivered[id(answers)] = answers
        asyncio.get_running_loop().call_soon(self._delivered.pop, id(answers))
        return answers

    def overheard(self, messages: Sequence[Message], answers: Sequence[Posted]) -> None:
        """Somebody in this process posted: no need to ask the store what."""
        if id(answers) not in self._delivered:
            self._deliver(messages, answers)

    def _deliver(self, messages: Sequence[Message], answers: Sequence[Posted]) -> None:
        shell = self._shell
        for message, answer in zip(messages, answers, strict=True):
            if answer.outcome != "posted":
                continue
            shell.births.heard(message)
            live = shell.live.get(answer.key)
            if live is None or live.parking:
                shell.claims.look()
            if live is not None:
                mail = Mail(answer.n, message.id, message.kind, message.name, message.body)
                live.post((mail,))
