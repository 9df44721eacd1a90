"""Waiting nodes: parked with a time to wake at, a signal to await, or both; no worker sees them.

A wait that is already over completes at once, and routing goes on past it (G-76, G-80). Whatever
is wrong with its spec fails the node, never the event and never the run directly (G-88).
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from perdure.kernel.actions import ConsumeSignal, CreateTask, ResolveWait
from perdure.kernel.plan import PlannedNode
from perdure.kernel.run import KeptSignal, NodeState
from perdure.kernel.tasks import or_failed, resolved
from perdure.kernel.turn import EMPTY, Turn
from perdure.kernel.wait_specs import WaitSpecError, awaited, wake_time
from perdure.model.failure import FailureRecord
from perdure.model.moments import moment


def park(turn: Turn, node: PlannedNode) -> None:
    """Create the wait's task: waiting, or completed if it is over already, or failed."""
    input = or_failed(turn, node, resolved)
    if input is None:
        return
    try:
        spec = _spec(turn, node, input)
        if node.type == "WAIT":
            _park_until(turn, node.id, input, wake_time(spec, turn.now))
        else:
            name, until = awaited(spec, turn.now)
            if (spec.get("on_timeout") == "continue") != node.goes_on:
                raise WaitSpecError("on_timeout must stand in the document itself, as plain text")
            _park_for_signal(turn, node.id, input, name, until)
    except WaitSpecError as error:
        failure = FailureRecord("input", f"node {node.id} cannot wait: {error}", permanent=True)
        turn.emit(CreateTask(turn.new_id(), node.id, "failed", input=input, failure=failure))


def _spec(turn: Turn, node: PlannedNode, input: Raw) -> Any:
    spec = turn.deps.codec.decode(input)
    if node.spec.secrets:
        raise WaitSpecError("a wait cannot read secrets: nothing would fill them in")
    if node.spec.constant and isinstance(spec, dict):
        # A null that was written is as good as absent; one that a template gave is not (D-12).
        return {key: value for key, value in spec.items() if value is not None}
    return spec


def _park_until(turn: Turn, node: str, input: Raw, due: int) -> None:
    if due <= turn.now:
        _complete_at_once(turn, node, input, woke_at(turn.now))
    else:
        turn.emit(CreateTask(turn.new_id(), node, "waiting", input=input, wake_at=due))


def _park_for_signal(turn: Turn, node: str, input: Raw, name: str, until: int | None) -> None:
    kept = oldest(turn, name)
    if kept is not None:
        output = signal_output(turn.payload(kept))
        turn.emit(ConsumeSignal(kept.id, node))
        _complete_at_once(turn, node, input, output)
    else:
        turn.emit(
            CreateTask(
                turn.new_id(), node, "waiting", input=input, wake_at=until, awaited_signal=name
            )
        )


def _complete_at_once(turn: Turn, node: str, input: Raw, output: Raw) -> None:
    turn.emit(CreateTask(turn.new_id(), node, "completed", input=input, output=output))
    turn.remember(node, output)


def resolve(turn: Turn, node: str, state: NodeState, output: Raw) -> None:
    """A parked wait has what it waited for. A node that the definition no longer has leads
    nowhere and is recorded failed, like any completion of it (D-5)."""
    if node in turn.plan.nodes:
        turn.emit(ResolveWait(state.task, node, "completed", output=output))
        turn.remember(node, output)
    else:
        message = f"node {node} is not in version {turn.plan.version} of the definition"
        fail(turn, node, state, FailureRecord("routing", message, permanent=True))


def fail(turn: Turn, node: str, state: NodeState, failure: FailureRecord) -> None:
    """A parked wait ends without what it waited for."""
    turn.emit(ResolveWait(state.task, node, "failed", failure=failure))


def oldest(turn: Turn, name: str) -> KeptSignal | None:
    """The kept signal of this name that came first."""
    return next((signal for signal in turn.run.signals if signal.name == name), None)


def signal_output(payload: Raw | None) -> Raw:
    """The output that a payload makes: none and null are `{}` (G-83)."""
    if payload is None or (len(memoryview(payload)) == 4 and bytes(payload) == b"null"):
        return EMPTY
    return payload


def woke_at(now: int) -> Raw:
    """A WAIT's output: when it woke, in UTC with fractions of a second (G-77)."""
    text = moment(now).replace(tzinfo=None).isoformat(timespec="microseconds")
    return Raw(f'{{"woke_at":"{text}Z"}}'.encode())
