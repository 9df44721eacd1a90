"""Running: a workflow's function on its loop, live or replayed.

Owns the function's task: how it begins, runs on until it waits, ends, and is let go of. What makes
it go on stands in happened.py and, from its journal, in replay.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol
from zlib import crc32

from msgspec import Raw

from perdure.kernel.actions import (
    BeginRun,
    BufferSignal,
    Continued,
    FinishRun,
    ResolveWait,
)
from perdure.kernel.code.call import AnyCall, Call
from perdure.kernel.code.callbacks import Timer
from perdure.kernel.code.calls import EMPTY, Calls
from perdure.kernel.code.closing import close
from perdure.kernel.code.handlings import Handlings
from perdure.kernel.code.lines import line_in, line_of
from perdure.kernel.code.loop import HotLoop
from perdure.kernel.code.stuck import ContinueAsNew, Interrupted, endless, exits, hot_loop
from perdure.kernel.onward import Decided
from perdure.kernel.protocol import Deps
from perdure.kernel.run import GRACE, Run
from perdure.model.errors import Canceled
from perdure.model.failure import FailureRecord

#: How often code may go on as new in one turn: without a wait in between it never ends.
_CONTINUED_AT_ONCE: Final = 100


class Program(Protocol):
    """A workflow function, as the machine needs it."""

    name: str
    version: str
    hash: str
    #: How long code may clean up after a cancel or its deadline; µs.
    grace: int
    #: How long a run may take; µs, None = no end.
    max_duration: int | None

    def main(self, calls: Calls, /) -> Coroutine[Any, Any, Raw]:
        """The function's coroutine on the run's input; its output as JSON text."""

    def failure(self, error: BaseException, /) -> FailureRecord:
        """What is recorded of the exception that ended the function."""

    def error(self, failure: FailureRecord, call: AnyCall, attempt: int, /) -> BaseException:
        """What a call raises that ended so; `attempt` from 1."""


class Running:
    """One run's code. `run` is its snapshot; `now` the time of what is being decided, in µs."""

    __slots__ = (
        "_continued", "_endless", "calls", "deps", "given_up", "handlings", "now", "outputs",
        "past", "program", "root", "run",
    )  # fmt: skip

    def __init__(self, program: Program, run: Run, deps: Deps) -> None:
        self.run = run
        self.now = 0
        self.calls = Calls(run, deps)
        #: See kernel.protocol.Machine.handlings: of the step calls that have no outcome.
        self.handlings = Handlings(self.calls.open)
        self.program = program
        self.deps = deps
        #: The function's task, once it has begun.
        self.root: asyncio.Task[Raw] | None = None
        #: Why the code is not run any more: only the run's end is decided (codeless.py).
        self.given_up = ""
        #: How often the code has gone on as new within the turn that is under way.
        self._continued = 0
        #: It was told that nothing can make the code go on.
        self._endless = False
        #: Of a run that has ended and is to be retried: its journal, and recorded outputs that
        #: stand apart from it.
        self.past: Sequence[Decided] = ()
        self.outputs: Mapping[str, Raw] = EMPTY

    # ------------------------------------------------------------------ running

    def run_on(self) -> None:
        """Let the code run until it waits; record its end if it ended. Raises Stuck."""
        self.calls.loop.now = self.now
        self.turn()
        self.rest()

    def turn(self, *first: Any) -> None:
        """Let the code run until it waits, from a callback of its loop's if one is given. Raises
        Stuck."""
        try:
            self.calls.loop.run_ready(*first)
        except BaseException as error:
            self.broken_off(error)
            raise
        self.turn_over()

    def broken_off(self, error: BaseException) -> None:
        """A turn ended by this error, which is to be raised on. Raises Stuck instead where the code
        runs on and on."""
        calls = self.calls
        if isinstance(error, HotLoop):
            stuck = calls.stuck = calls.stuck or hot_loop(line_of(self.root))
            close(calls)
            raise stuck from None
        ends = isinstance(error, SystemExit | KeyboardInterrupt)
        if ends and not isinstance(calls.stuck, Interrupted):
            # It stands half-way: nothing more may be decided with it.
            calls.stuck = Interrupted("the process ends in the middle of a turn")
            calls.open.clear()
            if isinstance(error, SystemExit):
                self.deps.told(self.run, exits(error.code, line_in(error)))

    def rest(self) -> None:
        """The code waits, or has ended."""
        root = self.root
        if root is None:
            return
        if root.done():
            self._finish(root)
        elif not self.calls.open and not self._endless:
            self._waits_for_ever(root)

    def _waits_for_ever(self, root: asyncio.Task[Raw]) -> None:
        if self.run.stopping is None:  # its end comes with its time to clean up
            self._endless = True
            self.deps.told(self.run, endless(line_of(root)))

    def turn_over(self) -> None:
        """What the code asked for at last is recorded. Raises Stuck, if it is."""
        calls = self.calls
        stuck = calls.stuck
        if stuck is None:
            calls.record_timers()
            return
        close(calls)
        raise stuck

    def begin(self) -> None:
        """Start the function."""
        loop = self.calls.loop
        loop.began = loop.now = self.now
        loop.salt = _salt(self.run)
        self.root = loop.begin(self.program.main(self.calls))

    #: See kernel.protocol.Machine.may_ask.
    may_ask: Final = True

    def child(self, node: str, task: str) -> Any:
        """What the engine is to start for a call of another run; None once nobody waits for it."""
        call = self.calls.open.get(node)
        if isinstance(call, Call) and call.task == task and call.child is not None:
            return call.child.start
        return None

    # ------------------------------------------------------------------ ending

    def _finish(self, root: asyncio.Task[Raw]) -> None:
        """The function has ended: what it left behind ends with it, and so does the run."""
        error = None if root.cancelled() else root.exception()
        if isinstance(error, ContinueAsNew) and self.run.stopping is None:
            self._continue_with(error.input)
            return
        finish = self._outcome(root)
        self.wind_up()
        self.end_with(finish)

    def _continue_with(self, input: Raw | None) -> None:
        """The run goes on as new: kept signals stay, everything else is forgotten."""
        self.wind_up()
        close(self.calls)
        before, run = self.calls, self.run
        self._continued += 1
        if self._continued > _CONTINUED_AT_ONCE:
            before.stuck = hot_loop(" through continue_as_new")
            raise before.stuck
        calls = self.calls = Calls(run, self.deps)
        self.handlings = Handlings(calls.open)
        calls.actions, calls.payloads = before.recording(), before.payloads
        kept, limit = run.signals, self.program.max_duration
        calls.emit(
            Continued(
                run.definition, run.id, run.version, run.hash, run.python, input,
                config=run.config, metadata=run.metadata, paused=run.paused,
                life=run.life + 1, trace=run.trace,
                deadline=None if limit is None else self.now + limit,
            )
        )  # fmt: skip
        for signal in kept:
            payload = signal.payload if signal.payload is not None else calls.payloads[signal.id]
            calls.emit(BufferSignal(signal.id, signal.name, payload))
        calls.emit(BeginRun())
        self.begin()
        self.run_on()
        self._continued -= 1

    def wind_up(self) -> None:
        """Tasks that the function did not wait for are cancelled, calls given up."""
        calls = self.calls
        for task in calls.loop.tasks:
            task.cancel()
        self.turn()
        self._give_up_all()

    def _give_up_all(self) -> None:
        for call in list(self.calls.open.values()):
            if isinstance(call, Timer):
                call.cancel()
            elif call.future is not None:
                call.future.cancel()

    def _outcome(self, root: asyncio.Task[Raw]) -> FinishRun:
        stopping = self.run.stopping
        if stopping is not None:
            if not root.cancelled():
                root.exception()  # asyncio need not tell of it
            return stopped(stopping)
        if root.cancelled():
            message = "the workflow's code cancelled itself"
            return FinishRun("failed", failure=FailureRecord(Canceled.kind, message))
        error = root.exception()
        if error is not None:
            return FinishRun("failed", failure=self.program.failure(error))
        return FinishRun("completed", output=root.result())

    def close_down(self, finish: FinishRun) -> None:
        """End the run, whatever its code is at."""
        self._give_up_all()
        self.end_with(finish)

    def end_with(self, finish: FinishRun) -> None:
        """Nothing is left that a timer, a signal or a late report could wake."""
        calls = self.calls
        grace = self.run.nodes.get(GRACE)
        if grace is not None and grace.status == "waiting":
            calls.emit(ResolveWait(grace.task, GRACE, "canceled"))
        calls.emit(finish)
        close(calls)

    # ------------------------------------------------------------------ what its calls are told

    def stop(self) -> None:
        """One CancelledError at the function's current await."""
        if self.root is not None and not self.calls.stop_seen:
            self.calls.stop_seen = True
            self.root.cancel()

    def fail_call(self, node: str, failure: FailureRecord, attempt: int) -> None:
        """A call ended badly, for good."""
        call = self.calls.open[node]
        assert not isinstance(call, Timer)
        self.calls.failed(node, self.program.error(failure, call, attempt + 1))

    def give_up(self, why: str) -> list[str]:
        """Run the code no more, and let it go; see closing.close."""
        self.given_up = why
        self.calls.recorded = None
        return close(self.calls)

    def close(self) -> list[str]:
        """Let the code go; see closing.close."""
        return close(self.calls)


def _salt(run: Run) -> int:
    return crc32(f"{run.definition}/{run.id}".encode()) << 24


def stopped(failure: FailureRecord) -> FinishRun:
    """The end of a run that was told to stop, whatever its function returned since."""
    return FinishRun("canceled" if failure.kind == Canceled.kind else "failed", failure=failure)
