"""Fold: how each action changes the snapshot.

The same functions serve the live machine (at emission, G-5) and loading (row by row), which is
why folding a journal gives the very snapshot the live machine had (G-6). Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from perdure.kernel.actions import (
    Action,
    BeginCompensation,
    BeginRun,
    BufferSignal,
    CancelChild,
    CancelTasks,
    ChildFound,
    Claimed,
    CompensateTask,
    CompleteTask,
    ConsumeSignal,
    Continued,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    Ignored,
    OpenRun,
    Patched,
    Refused,
    ReopenRun,
    RequestStop,
    ResolveWait,
    RetryTask,
    SetPaused,
    StartChild,
)
from perdure.kernel.moves import NEW, TASK_MOVES, IllegalMove, check_phase, check_run, check_task
from perdure.kernel.onward import Decided, Onward
from perdure.kernel.run import COMPENSATING, FORWARD, ChildState, KeptSignal, NodeState, Run
from perdure.model.failure import FailureRecord

#: What a signal without a payload is kept as.
_NULL = Raw(b"null")


def open_run(run: Run, action: OpenRun) -> None:
    """The run exists: its context is set."""
    if run.status != NEW:
        raise IllegalMove(f"run: it was opened before and is {run.status}")
    run.definition, run.id = action.definition, action.id
    run.version, run.hash, run.python = action.version, action.hash, action.python
    run.input, run.config = action.input, action.config
    run.metadata, run.deadline, run.trace = action.metadata, action.deadline, action.trace
    run.status = "running"


def create_task(run: Run, action: CreateTask) -> None:
    """A node is reached. A created task is at attempt 0 (G-24)."""
    node, status = action.node, action.status
    if node in run.nodes:
        raise IllegalMove(f"node {node} has a task already: it is {run.nodes[node].status}")
    if status not in TASK_MOVES[NEW]:
        check_task(node, NEW, status)
    number = due = 0
    if status == "pending":
        run.active += 1
        due = run.at
    elif status == "completed":
        run.completed = number = run.completed + 1
    elif status == "waiting":
        run.active += 1
        run.nodes[node] = NodeState(
            action.task, status, wake_at=action.wake_at, awaited_signal=action.awaited_signal
        )
        return
    elif status == "failed":
        _count_failures(run, (node,), action.failure)
    run.nodes[node] = NodeState(action.task, status, 0, action.branches, number, due)


def leaving(run: Run, node: str, status: str, after: str) -> NodeState:
    """The state that a node's task leaves, which must be of this status, for another one."""
    state = run.nodes.get(node)
    if state is None:
        raise IllegalMove(f"node {node} has no task")
    if state.status != status:
        check_task(node, state.status, after)
        raise IllegalMove(f"task of node {node} is {state.status} and not {status}")
    if after not in TASK_MOVES[status]:
        check_task(node, status, after)
    return state


def complete_task(run: Run, action: CompleteTask) -> None:
    """An active task ended well."""
    node, nodes = action.node, run.nodes
    before = nodes.get(node)
    if before is None or before.status != "pending":
        before = leaving(run, node, "pending", "completed")
    run.active -= 1
    run.completed = number = run.completed + 1
    nodes[node] = NodeState(before.task, "completed", before.attempt, None, number)
    if action.metadata is not None:
        # A value decoded from a row is a view of it: a copy does not keep the row in memory.
        run.noted = run.noted.adding({key: raw.copy() for key, raw in action.metadata.items()})


def fail_task(run: Run, action: FailTask) -> None:
    """An active task failed for good. One of which nobody knows what it did is numbered as if it
    had completed: what was done last is undone first."""
    node, number = action.node, 0
    before = leaving(run, node, "pending", "failed")
    run.active -= 1
    _count_failures(run, (node,), action.failure)
    if action.unknown:
        run.unknown += (node,)
        run.completed = number = run.completed + 1
    run.nodes[node] = NodeState(
        before.task, "failed", before.attempt, None, number, unknown=action.unknown
    )


def retry_task(run: Run, action: RetryTask) -> None:
    """The next attempt of the same task: reports of the one before are stale from here (G-40)."""
    before = leaving(run, action.node, "pending", "pending")
    child = before.child
    run.nodes[action.node] = NodeState(
        before.task,
        "pending",
        action.attempt + 1,
        first_due=before.first_due,
        not_before=action.not_before,
        child=None if child is None else replace(child, created=None, typed=False),
        unknown=before.unknown or action.unknown,
    )


def resolve_wait(run: Run, action: ResolveWait) -> None:
    """A wait ended; what it awaited is forgotten (G-29)."""
    status, number = action.status, 0
    before = leaving(run, action.node, "waiting", status)
    run.active -= 1
    if status == "completed":
        run.completed = number = run.completed + 1
    elif status == "failed":
        _count_failures(run, (action.node,), action.failure)
    else:
        run.gave_up = True
    run.nodes[action.node] = NodeState(before.task, status, completed_no=number)


def buffer_signal(run: Run, action: BufferSignal) -> None:
    """A signal joins those that are kept, as the youngest."""
    payload = action.payload
    if payload is None and action.payload_ref is None:
        payload = _NULL
    run.signals = (*run.signals, KeptSignal(action.signal, action.name, payload))


def consume_signal(run: Run, action: ConsumeSignal) -> None:
    """A kept signal is taken, once."""
    left = tuple(signal for signal in run.signals if signal.id != action.signal)
    if len(left) != len(run.signals) - 1:
        raise IllegalMove(f"signal {action.signal} is not kept: it cannot be consumed")
    run.signals = left


def start_child(run: Run, action: StartChild) -> None:
    """The task's outcome is another run's."""
    before = leaving(run, action.node, "pending", "pending")
    child = ChildState(action.definition, action.id, action.detached)
    run.nodes[action.node] = replace(before, child=child, wake_at=action.wake_at, not_before=0)


def child_found(run: Run, action: ChildFound) -> None:
    """Whose the child is, is known."""
    before = leaving(run, action.node, "pending", "pending")
    if before.child is None:
        raise IllegalMove(f"task of node {action.node} waits for no child")
    child = replace(before.child, created=action.created, typed=action.typed)
    run.nodes[action.node] = replace(before, child=child)


def cancel_child(run: Run, action: CancelChild) -> None:
    """The child is let go, which its node's end records; or asked to end, which is awaited."""
    if action.awaited:
        before = leaving(run, action.node, "pending", "pending")
        if before.child is None:
            raise IllegalMove(f"task of node {action.node} waits for no child")
        run.nodes[action.node] = replace(before, child=replace(before.child, stopping=True))


def cancel_tasks(run: Run, action: CancelTasks) -> None:
    """The named nodes' tasks end. Those of which nobody knows what they did are numbered, as in
    `fail_task`."""
    status, number = action.status, 0
    if action.unknown:
        run.unknown += action.nodes
    for node in action.nodes:
        if status not in ("failed", "canceled"):
            raise IllegalMove(f"task of node {node}: to cancel it is not to make it {status}")
        waits = node in run.nodes and run.nodes[node].status == "waiting"
        before = leaving(run, node, "waiting" if waits else "pending", status)
        run.active -= 1
        if action.unknown:
            run.completed = number = run.completed + 1
        run.nodes[node] = NodeState(
            before.task, status, before.attempt, None, number, unknown=action.unknown
        )
    if status == "failed":
        _count_failures(run, action.nodes, action.failure)
    else:
        run.gave_up = True


def reopen_run(run: Run, action: ReopenRun) -> None:
    """A finished run goes on without the reset nodes' tasks (G-32)."""
    if run.status == NEW:
        raise IllegalMove("run: it was never opened")
    check_run(run.status, "running")
    reset = frozenset(action.reset)
    for node in action.reset:
        run.nodes.pop(node, None)
    run.failures = tuple(failure for failure in run.failures if failure[0] not in reset)
    run.old_failures = len(run.failures)
    run.version, run.hash, run.deadline = action.version, action.hash, action.deadline
    # A value that stands apart is unknown until it is fetched; one not given stays as it is.
    if action.input is not None or action.input_ref is not None:
        run.input = action.input
    if action.config is not None or action.config_ref is not None:
        run.config = action.config
    run.status = "running"
    run.stopping, run.reason, run.phase, run.done = None, "", FORWARD, ()
    run.unknown = tuple(node for node in run.unknown if node not in reset)


def begin_run(run: Run, action: BeginRun) -> None:
    """A workflow's function was called."""
    if run.begun:
        raise IllegalMove("run: its function was called before")
    run.begun = True
    if action.deadline is not None:
        run.deadline = action.deadline


def continued(run: Run, action: Continued) -> None:
    """A workflow begins anew in the same run."""
    fresh = Run(
        definition=action.definition, id=action.id, version=action.version, hash=action.hash,
        python=action.python, status="running", input=action.input, config=action.config,
        metadata=action.metadata, deadline=action.deadline, nodes={}, paused=action.paused,
        life=action.life, trace=action.trace, at=run.at,
    )  # fmt: skip
    for name in Run.__struct_fields__:
        setattr(run, name, getattr(fresh, name))


def request_stop(run: Run, action: RequestStop) -> None:
    """The run is to end; the first reason stays (scenario 25)."""
    if run.stopping is None:
        run.stopping, run.reason = action.failure, action.reason


def begin_compensation(run: Run, action: BeginCompensation) -> None:
    """From here on the run undoes what it did, and then ends for this reason."""
    check_phase(run.phase, COMPENSATING)
    run.stopping, run.reason = action.failure, action.reason
    run.phase, run.unknown = COMPENSATING, action.unknown
    numbers = [(state.completed_no, node) for node, state in run.nodes.items()]
    run.done = tuple(node for number, node in sorted(numbers) if number)


def compensate_task(run: Run, action: CompensateTask) -> None:
    """What the node did, or may have done, is undone."""
    node = action.node
    state = run.nodes.get(node)
    status = state.status if state is not None and state.unknown else "completed"
    before = leaving(run, node, status, "compensated")
    run.nodes[node] = replace(before, status="compensated")


def set_paused(run: Run, action: SetPaused) -> None:
    """Dispatches are held, or go on."""
    run.paused = action.paused


def finish_run(run: Run, action: FinishRun) -> None:
    """The run ended."""
    check_run(run.status, action.status)
    run.status = action.status


def nothing(run: Run, action: Action) -> None:
    """Changes nothing that is routed on (G-25)."""


def claimed(run: Run, action: Claimed) -> None:
    """A takeover: counted until the run makes progress (any other row)."""
    run.crashes += 1


def _count_failures(run: Run, nodes: Iterable[str], failure: FailureRecord | None) -> None:
    reason = failure or FailureRecord("unknown", "no reason recorded")
    run.failures += tuple((node, reason) for node in nodes)


FOLDS: dict[type, Callable[[Run, Any], None]] = {
    OpenRun: open_run,
    CreateTask: create_task,
    DispatchTask: nothing,
    CompleteTask: complete_task,
    FailTask: fail_task,
    RetryTask: retry_task,
    ResolveWait: resolve_wait,
    BufferSignal: buffer_signal,
    ConsumeSignal: consume_signal,
    StartChild: start_child,
    ChildFound: child_found,
    CancelChild: cancel_child,
    CancelTasks: cancel_tasks,
    ReopenRun: reopen_run,
    BeginRun: begin_run,
    Continued: continued,
    RequestStop: request_stop,
    BeginCompensation: begin_compensation,
    CompensateTask: compensate_task,
    Patched: nothing,
    SetPaused: set_paused,
    Ignored: nothing,
    Refused: nothing,
    FinishRun: finish_run,
    Claimed: claimed,
}


def go_onward(run: Run, onward: Onward) -> None:
    """A task ended well, and the one that follows it was reached."""
    node, follower, nodes = onward.node, onward.next, run.nodes
    before = nodes.get(node)
    if before is None or before.status != "pending":
        before = leaving(run, node, "pending", "completed")
    if follower in nodes:
        raise IllegalMove(f"node {follower} has a task already: it is {nodes[follower].status}")
    run.completed = number = run.completed + 1
    nodes[node] = NodeState(before.task, "completed", before.attempt, None, number)
    nodes[follower] = NodeState(onward.next_task, "pending", 0, None, 0, run.at)
    run.crashes = 0


def fold_transition(run: Run, transition: Decided) -> None:
    """Fold a recorded transition. Raises IllegalMove when no rule allows it."""
    run.at = transition.at
    if type(transition) is Onward:
        go_onward(run, transition)
        return
    for action in transition.actions:
        if type(action) is not Claimed:
            run.crashes = 0
        FOLDS[type(action)](run, action)


def fold(transitions: Iterable[Decided]) -> Run:
    """The snapshot of a journal."""
    run = Run()
    for transition in transitions:
        fold_transition(run, transition)
    return run
