"""Children: runs that a run's code asks for, started with the row that records the call.

The store decides whether one has to be made, and tells the run that asked; so there is nothing to
carry out here but to say, with each row, what is asked of other runs. What a row could not say (the
first row of a run, or one written while the run was paused) is said with a row of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from perdure.codec.failures import record_failure
from perdure.engine.coding import close
from perdure.engine.starting import begin, to_publish
from perdure.kernel.actions import CancelChild, CreateTask, SetPaused, StartChild, Transition
from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.run import NodeState
from perdure.model.driving import StartRequest
from perdure.model.errors import PayloadMissing
from perdure.stores.children import STARTED, ChildCancel, ChildStart, Outgoing, started_id
from perdure.stores.port import Mail

if TYPE_CHECKING:
    from perdure.engine.live_run import LiveRun
    from perdure.engine.shell import Shell

_log = logging.getLogger("perdure.engine")

GAVE_UP: Final = "the run that started it does not wait for it any more"


def outgoing(shell: Shell, live: LiveRun, transitions: Sequence[Transition]) -> list[Outgoing]:
    """What these transitions of the run, which are about to be written, ask of other runs."""
    if not isinstance(live.machine, CodeMachine):
        return []
    asked: list[Outgoing] = []
    actions: list[Any] = [action for one in transitions for action in one.actions]
    paused = next((not a.paused for a in actions if type(a) is SetPaused), live.run.paused)
    reason = ""
    for place, action in enumerate(actions):
        kind = type(action)
        if kind is SetPaused:
            paused = action.paused
        elif kind is StartChild and not paused:
            created = actions[place - 1]  # they are recorded together
            assert isinstance(created, CreateTask)
            state = live.run.nodes.get(action.node)
            if state is not None and state.task == action.task:
                asked += _asked(shell, live, action.node, state, created.input)
        elif kind is CancelChild:
            stopping = live.run.stopping
            reason = f"{GAVE_UP}: {stopping.message}" if stopping else GAVE_UP
            asked.append(ChildCancel(action.task, reason))
    return asked


def _asked(
    shell: Shell, live: LiveRun, node: str, state: NodeState, input: Raw | None
) -> Iterator[ChildStart]:
    """Of a call that is still wanted: the run it asks for, ready to be made."""
    child, machine = state.child, live.machine
    assert isinstance(machine, CodeMachine)
    definition = machine.child(node, state.task)
    if child is None or definition is None:
        return
    name, waits, former = (child.definition, child.id), not child.detached, definition.aliases
    try:
        beginning = begin(
            StartRequest(definition, child.id, input, trace=live.run.trace), shell.deps,
            key=shell.ids.key(), worker=shell.worker, owned=False, commit=shell.next_commit(),
        )  # fmt: skip
    except Exception as error:
        # It fails the call, unless the run is there already: one that is joined has its own input.
        refusal = msgspec.json.encode(record_failure(error, permanent=True))
        yield ChildStart(state.task, node, name, None, None, refusal, waits, former)
        return
    close(beginning.machine, f"{child.definition}/{child.id}")
    known = to_publish(definition, shell.clock.now())
    yield ChildStart(state.task, node, name, beginning.row, known, None, waits, former)
    if shell.claims.serves(definition):
        return
    if shell.claims.adopts:
        shell.claims.add(definition)
    else:
        _log.info(
            "%s/%s is a child of %s/%s and waits for a worker that serves %s: this one does not",
            child.definition, child.id, live.workflow, live.run_id, child.definition,
        )  # fmt: skip


def ask_again(
    shell: Shell, live: LiveRun, unread: Sequence[Mail] = (), *, all: bool = False
) -> None:
    """See that every call which waits for a run has asked for it; the store does nothing for one
    that has. `all`: also those that were answered, as after a move from another store."""
    if not isinstance(live.machine, CodeMachine) or live.run.paused:
        return
    answered = {mail.id for mail in unread if mail.kind == STARTED}
    for node, state in list(live.run.nodes.items()):
        if state.status != "pending" or state.child is None:
            continue
        known = state.child.created is not None or started_id(state.task) in answered
        if known and not all:
            continue
        place = live.inputs[node].place if node in live.inputs else None
        if isinstance(place, tuple):
            live.fetching += 1
            shell.spawn(_fetch_and_ask(shell, live, node, state, place))
        else:
            live.send(_asked(shell, live, node, state, place))


async def _fetch_and_ask(
    shell: Shell, live: LiveRun, node: str, state: NodeState, place: tuple[int, int]
) -> None:
    try:
        input = Raw(await shell.read(live.key, place))
    except PayloadMissing as error:
        live.stall(f"the input of the child {node} is gone: {error}")
        return
    finally:
        live.fetching -= 1
    now: Any = live.run.nodes.get(node)
    if not live.dead and now is not None and now.task == state.task:
        live.send(_asked(shell, live, node, state, input))
