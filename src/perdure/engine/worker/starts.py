"""Starts: runs that are started here, and those that this worker owns from birth."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from perdure.engine.lane import Lane
from perdure.engine.runs.children import ask_again
from perdure.engine.runs.delays import arm_beginning
from perdure.engine.runs.live_run import LiveRun
from perdure.engine.runs.starting import Beginning, begin
from perdure.model.driving import StartRequest
from perdure.model.errors import PerdureError
from perdure.stores.answers import Started
from perdure.stores.rows import NewRun

if TYPE_CHECKING:
    from perdure.engine.worker.shell import Shell

CLOSED_WHILE_STARTING: Final = "the engine was closed; whether the run was started is not known"


class Starts:
    """An engine's. `lane`: on which rows of new runs are written."""

    def __init__(self, shell: Shell, lane: Lane[NewRun, Started]) -> None:
        self._shell = shell
        self.lane = lane
        self._waiting: dict[asyncio.Future[Started], Beginning] = {}

    def start(self, request: StartRequest) -> Started | asyncio.Future[Started]:
        """Start a run of a definition that is served here, owned from birth unless it is delayed;
        what the store says, or will say. Raises what `begin` raises, and PerdureError when the
        engine does not work."""
        shell = self._shell
        if shell.stopping or not shell.worker:
            shell.check_working()
        key = shell.ids.key()
        beginning = begin(
            request, shell.deps, key=key, worker=shell.worker,
            owned=not (request.delay or shell.struck_off), commit=shell.next_commit(),
        )  # fmt: skip
        answer = self.lane.write(beginning.row, partial(self._started, beginning))
        if answer is not None:
            self._take(beginning, made=answer.outcome != "exists")
            return answer
        told = beginning.answer
        if isinstance(told, Exception):
            raise told
        if told is not None:
            return told
        shell.in_hand.add(key)  # nobody else has had a turn since the row was submitted
        beginning.future = future = asyncio.get_running_loop().create_future()
        self._waiting[future] = beginning
        return future

    def _started(self, beginning: Beginning, answer: Started | Exception) -> None:
        """The store has answered, not at once; or the row can never be written."""
        future = beginning.future
        self._shell.in_hand.discard(beginning.row.key)
        made = not isinstance(answer, Exception) and answer.outcome != "exists"
        self._take(beginning, made=made)
        if future is None:
            beginning.answer = answer
            return
        self._waiting.pop(future, None)
        if isinstance(answer, Exception):
            _refuse(future, answer)
        elif not future.done():
            future.set_result(answer)

    def _take(self, beginning: Beginning, *, made: bool) -> None:
        """Into memory with the run, if it was made."""
        row, shell = beginning.row, self._shell
        # One that this worker was still to own when it was declared dead is claimed anew.
        if made and row.owner == shell.worker and not shell.struck_off:
            self.born(beginning)
        else:
            beginning.close()

    def born(self, beginning: Beginning) -> None:
        """A run was made that this worker owns."""
        shell = self._shell
        row, machine, run = beginning.row, beginning.machine, beginning.run
        live = LiveRun(
            shell, row.key, row.definition, row.id, beginning.definition, machine, run,
            epoch=0, seq=1,
        )  # fmt: skip
        shell.enter(live, run)
        if beginning.at_a_node:
            shell.effects.carry_start(live, beginning.transitions[0])
        else:
            shell.effects.carry_out(live, beginning.transitions)
        if live.dead:
            return
        if machine.may_ask:  # as all code may
            arm_beginning(live, 0)
            ask_again(shell, live)
        if live.work.orders and not shell.stopping:
            shell.shared_runner.take(live.work)

    def abandon(self) -> None:
        """Whoever waits is told that it is not known; what is not durable never was."""
        self.lane.abandon()
        waiting, self._waiting = self._waiting, {}
        for future, beginning in waiting.items():
            _refuse(future, PerdureError(CLOSED_WHILE_STARTING))
            beginning.close()


def _refuse(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
