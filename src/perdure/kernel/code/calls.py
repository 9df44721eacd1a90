"""Calls: what a workflow's code asks for, recorded as it asks, or held against what was recorded.

While the run is decided live each call becomes actions of the transition in the making. While it
is replayed each call is looked up among the calls that its transition recorded; the first that
differs stops the run. Owns node ids and open calls; how a wait begins stands in waits.py, and what
resolves them is the machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, NoReturn, Protocol

from msgspec import Raw

from perdure.kernel.actions import (
    CancelChild,
    CancelTasks,
    CompleteTask,
    CreateTask,
    DispatchTask,
    Patched,
    ResolveWait,
    StartChild,
)
from perdure.kernel.code.call import (
    CHILD,
    SPAWN,
    STEP,
    WAIT,
    AnyCall,
    Call,
    CallFuture,
    How,
    StepFuture,
    future_of,
)
from perdure.kernel.code.callbacks import Timer
from perdure.kernel.code.lines import line_here
from perdure.kernel.code.loop import IDLE_CALLBACKS, WorkflowLoop
from perdure.kernel.code.scopes import SCOPE
from perdure.kernel.code.stuck import Evicted, Stuck, hot_loop
from perdure.kernel.code.turns import AT_REST
from perdure.kernel.events import NodeCompleted
from perdure.kernel.fold import FOLDS, create_task
from perdure.kernel.onward import Onward
from perdure.kernel.protocol import Deps
from perdure.kernel.run import NodeState, Run
from perdure.model.errors import Canceled
from perdure.model.failure import FailureRecord

#: Inputs over this many bytes are compared by a digest: they may stand apart from the journal.
DIGEST_OVER: Final = 1024
#: A call that is answered from memory counts for so many callbacks of a loop that never waits.
ANSWERED: Final = 10
#: Values that stand apart, while none is needed: most runs need none.
EMPTY: Final[Mapping[str, Raw]] = MappingProxyType({})
_GIVEN_UP: Final = FailureRecord(Canceled.kind, "the workflow gave it up", permanent=True)


class _Nothing(tuple[()]):
    """The actions while nothing is decided. What the garbage collector comes by, where a machine
    is let go of without being closed, may ask for something still: that is nobody's."""

    __slots__ = ()

    def append(self, action: Any) -> None:
        """It is not recorded."""


NOTHING: Final[Any] = _Nothing()


class Before(Protocol):
    """While the run is replayed: what the code asked for before, which it has to ask for again
    (recorded.Recorded). Whatever differs stops the run."""

    def match_step(self, call: Call, /) -> None:
        """The code awaits a step, or another run; the call gets what is recorded of it."""

    def match_wait(self, members: Sequence[Call], /) -> None:
        """The code waits for these cases; one that had come at once is answered."""

    def match_timer(self, timer: Timer, /) -> None:
        """A timer lives to the end of its turn."""

    def gave_up(self, node: str, /) -> None:
        """The code gave a call up."""

    def patched(self, id: str, /) -> bool:
        """Whether this is where the run took a guarded change's new way."""


class Calls:
    """One run's open calls. `recorded` is set while a recorded transition is replayed."""

    __slots__ = (
        "_counts", "_patches", "actions", "deps", "loop", "made", "new_timers", "onward", "open",
        "payloads", "plain", "recorded", "report", "run", "stop_seen", "stuck",
    )  # fmt: skip

    def __init__(self, run: Run, deps: Deps) -> None:
        self.run = run
        self.deps = deps
        #: Whether values are recorded as the plain JSON they are.
        self.plain = deps.codec.plain
        self.loop = WorkflowLoop(self)  # type: ignore[abstract]  # the rest is refused
        self.actions: list[Any] = NOTHING
        #: The report that is decided on, while nothing follows from it yet; and what that comes to
        #: while one step was called and nothing more. Then `actions` stands for nothing.
        self.report: NodeCompleted | None = None
        self.onward: Onward | None = None
        self.recorded: Before | None = None
        #: Why the code cannot go on, once it cannot.
        self.stuck: Stuck | None = None
        #: Node → its call, while it has no outcome; the one that is open longest first. None is
        #: open once the code is stuck.
        self.open: dict[str, AnyCall | Timer] = {}
        #: Payloads of kept signals that stand apart, loaded before the code runs.
        self.payloads: Mapping[str, Raw] = EMPTY
        #: Whether the code has been told to end.
        self.stop_seen = False
        #: Whether it has made a call that may have an effect.
        self.made = False
        self._patches: dict[str, bool] | None = None
        self._counts: dict[str, int] = {}
        #: Timers that the code asked for in this turn.
        self.new_timers: list[Timer] | None = None

    # ------------------------------------------------------------------ asking

    def named(self, name: str) -> str:
        """The node id of the next call of this name: `name`, `name#2`, `name#3`…"""
        counts = self._counts
        counts[name] = count = counts.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    def step(self, node: str, input: Raw | None, how: How) -> CallFuture:
        """A call of a step that was made live is awaited. Where nothing stands around it, what
        `dispatch` comes to is made in place."""
        loop, run = self.loop, self.run
        nodes = run.nodes
        if self.stop_seen or not loop.alive or SCOPE.get() is not None or node in nodes:
            return self.dispatch(Call(node, STEP, input, how))
        task = self.deps.new_id()
        self.open[node] = future = StepFuture(loop=loop)
        future.node = node
        future.how = how
        future.task = task
        self.made = True
        loop.idle = 0
        nodes[node] = NodeState(task, "pending", 0, None, 0, run.at)
        digest = None if input is None else digest_of(input)
        report = self.report
        if report is not None:
            self.report = None
            self.onward = Onward(
                run.at, report.task, report.node, task, node, report.output, input, 0,
                how.queue, how.policy.attempts, digest,
            )  # fmt: skip
        else:
            run.active += 1
            recording = self.recording()
            recording.append(CreateTask(task, node, "pending", input, digest=digest))
            recording.append(DispatchTask(task, node, 0, 0, how.queue, how.policy.attempts))
        return future

    def dispatch(self, call: Call) -> CallFuture:
        """A call of a step or of another run is awaited: it is to run."""
        loop = self.loop
        future = call.future = future_of(loop, (call,))
        if not loop.alive:
            return future
        scope = SCOPE.get()
        call.cleaning = self.stop_seen or (scope is not None and scope.cleaning)
        if scope is not None:
            call.undoes = scope.undoes
            scope.made(call.node)
        self.made = True
        loop.idle = 0
        if self.recorded is not None:
            self.recorded.match_step(call)  # which may name it otherwise
        else:
            self.create(call)
        self.open[call.node] = call
        return future

    def create(self, call: Call) -> None:
        """Record a call of a step or of another run."""
        task = call.task = self.deps.new_id()
        node, input, how = call.node, call.input, call.how
        if call.cleaning:
            created = CreateTask(
                task, node, "pending", input, digest=digest_of(input), undoes=call.undoes
            )
        elif input is None:
            created = CreateTask(task, node, "pending")
        else:
            created = CreateTask(task, node, "pending", input, digest=digest_of(input))
        create_task(self.run, created)
        self.recording().append(created)
        if (child := call.child) is not None:
            detached = call.kind == SPAWN
            self.emit(StartChild(task, node, child.definition, child.id, detached))
            return
        dispatch = (
            DispatchTask(task, node)
            if how is None
            else DispatchTask(task, node, 0, 0, how.queue, how.policy.attempts)
        )
        self.actions.append(dispatch)

    def answered(self) -> None:
        """A call was answered from memory. Too many in a row are a loop that never waits."""
        self.loop.idle += ANSWERED
        if self.loop.idle > IDLE_CALLBACKS:
            self.give_up_on(hot_loop(line_here()))

    def patched(self, id: str) -> bool:
        """Whether the run takes the new way of a guarded change, decided once and recorded."""
        if self._patches is None:
            self._patches = {}
        known = self._patches.get(id)
        if known is None:
            if not self.loop.alive:
                return False
            if self.recorded is not None:
                known = self.recorded.patched(id)
            else:
                known = True
                self.emit(Patched(id))
            self._patches[id] = known
        return known

    # ------------------------------------------------------------------ outcomes

    def completed(self, node: str, output: Raw) -> None:
        """A call's outcome is recorded: its code may go on when the loop runs."""
        call = self.open.pop(node)
        if isinstance(call, Timer):
            self.loop.fire(call)
            return
        if isinstance(call, StepFuture):
            call.set_result(output)
            return
        future = call.future
        assert future is not None
        if call.kind != WAIT:
            call.future = None  # they refer to one another: else only the collector frees them
            future.set_result(output)
            return
        self._won(call)
        future.set_result((call.index, output))

    def failed(self, node: str, error: BaseException) -> None:
        """The same, for the worse."""
        call = self.open.pop(node)
        assert not isinstance(call, Timer), "a loop's timer does not fail"
        assert call.future is not None
        if isinstance(call, Call) and call.kind == WAIT:
            self._won(call)
        call.future.set_exception(error)

    def _won(self, call: Call) -> None:
        """The other cases of a wait end with the first: nothing of a loser stays live."""
        assert call.future is not None
        if len(call.future.members) > 1:
            self.given_up([other for other in call.future.members if other is not call])

    # ------------------------------------------------------------------ giving up

    def given_up(self, members: Sequence[AnyCall]) -> None:
        """The code cancelled the future of these calls: nothing of them stays behind."""
        if not self.loop.alive:
            return
        for call in members:
            if self.open.pop(call.node, None) is not None:
                self._end(call)

    def _end(self, call: AnyCall) -> None:
        if self.recorded is not None:
            self.recorded.gave_up(call.node)
        elif call.kind != WAIT:
            if call.kind == CHILD and (child := call.child) is not None:
                self.emit(CancelChild(call.task, call.node, child.definition, child.id))
            self.emit_for_run(CancelTasks(_GIVEN_UP, (call.node,), "canceled"))
        else:
            self.emit(ResolveWait(call.task, call.node, "canceled", failure=_GIVEN_UP))

    # ------------------------------------------------------------------ the loop's timers

    def timer_wanted(
        self, when: float, due: int, callback: Callable[..., Any], args: Any, context: Context
    ) -> Timer:
        """A timer gets its node id at once; it is recorded if it lives to the turn's end."""
        timer = Timer(
            callback, args, context, loop=self.loop, at=when, due=due, node=self.named("timer")
        )
        if self.new_timers is None:
            self.new_timers = []
        self.new_timers.append(timer)
        self.open[timer.node] = timer
        return timer

    def timer_given_up(self, timer: Timer) -> None:
        """It is taken down in the same transition; if it was not recorded yet it never is."""
        self.open.pop(timer.node, None)
        if not timer.task:
            return
        if self.recorded is not None:
            self.recorded.gave_up(timer.node)
        else:
            self.emit(ResolveWait(timer.task, timer.node, "canceled", failure=_GIVEN_UP))

    def record_timers(self) -> None:
        """The turn is over: the timers that are still wanted are recorded."""
        if not self.new_timers:
            return
        timers, self.new_timers = self.new_timers, None
        for timer in timers:
            if timer.gone:
                continue
            self.loop.idle = 0
            if self.recorded is not None:
                self.recorded.match_timer(timer)
                continue
            timer.task = self.deps.new_id()
            self.emit(CreateTask(timer.task, timer.node, "waiting", wake_at=timer.due))

    # ------------------------------------------------------------------ recording

    def recording(self) -> list[Any]:
        """The actions of the transition in the making, one by one."""
        if self.report is not None:
            report, self.report = self.report, None
            self.run.active -= 1  # nothing stands in its place
            self.actions = [CompleteTask(report.task, report.node, report.attempt, report.output)]
        elif self.onward is not None:
            self.actions, self.onward = self.onward.actions, None
        return self.actions

    def emit(self, action: Any) -> None:
        """Record an action and fold it."""
        FOLDS[type(action)](self.run, action)
        self.recording().append(action)

    emit_for_run = emit

    def at_rest(self) -> None:
        """The decision is over: nothing is recorded until the next one."""
        self.report = self.onward = None
        self.actions = NOTHING
        self.loop.turn = AT_REST

    def forget(self) -> None:
        """The run's code is gone: nothing of it is awaited any more."""
        self.loop.forget_tasks()
        for call in self.open.values():
            if not isinstance(call, Timer):
                _let_go(call)
        self.open.clear()

    def give_up_on(self, stuck: Stuck) -> NoReturn:
        """The code cannot go on; it gets no more answers."""
        if self.stuck is None:
            self.stuck = stuck
        self.open.clear()
        self.loop.alive = False
        raise Evicted


def _let_go(call: AnyCall) -> None:
    """Nobody waits for this call any more. What does, and what it waits for, refer to one another:
    left as they are, only the garbage collector would free them."""
    future: Any = call.future
    if future is not None:
        for resume, _ in future._callbacks or ():
            future.remove_done_callback(resume)
        if isinstance(call, Call):
            call.future = None


def digest_of(input: Raw | None) -> str | None:
    """What a large input is compared by when the run is replayed."""
    if input is None or len(memoryview(input)) <= DIGEST_OVER:
        return None
    return blake2b(input, digest_size=16).hexdigest()
