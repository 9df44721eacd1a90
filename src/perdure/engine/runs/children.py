"""Children: runs that a run asks for, started with the row that records the call.

The store decides whether one has to be made, and tells the run that asked; so there is nothing to
carry out here but to say, with each row, what is asked of other runs. What a row could not say (the
first row of a run, one written while the run was paused, a call whose definition or input has to be
read first) is said with a row of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Raw

from perdure.codec.failures import record_failure
from perdure.engine.runs.delays import BEGIN, begins_at
from perdure.engine.runs.starting import begin, to_publish
from perdure.kernel.actions import (
    CancelChild,
    CreateTask,
    FinishRun,
    SetPaused,
    StartChild,
)
from perdure.kernel.child_ids import call_id
from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.onward import Decided
from perdure.kernel.run import ChildState
from perdure.model.definition import Definition
from perdure.model.driving import StartRequest
from perdure.model.errors import NotFound, PayloadMissing, PerdureError
from perdure.stores.answers import Mail
from perdure.stores.children import STARTED, cancel_message, started_id
from perdure.stores.rows import ChildCancel, ChildStart, Outgoing

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun

_log = logging.getLogger("perdure.engine")

GAVE_UP: Final = "the run that started it does not wait for it any more"
ENDS: Final = "the run that started it is ending"

#: Where an input stands: here, or apart from its row. None: there is none.
Place: TypeAlias = Raw | tuple[int, int] | None


class Asking(msgspec.Struct, frozen=True):
    """A call that asks for a run: an attempt of a node's task. `call`: its id."""

    node: str
    task: str
    call: str
    child: ChildState


def asking(live: LiveRun, node: str) -> Asking | None:
    """The call by which a node asks for a run now; None where it does not, or not yet."""
    state = live.run.nodes.get(node)
    if state is None or state.status != "pending" or state.child is None or state.not_before:
        return None
    return Asking(node, state.task, call_id(state.task, state.attempt), state.child)


def outgoing(holder: Holder, live: LiveRun, transitions: Sequence[Decided]) -> list[Outgoing]:
    """What these transitions of the run, which are about to be written, ask of other runs."""
    asked: list[Outgoing] = []
    actions: list[Any] = [action for one in transitions for action in one.actions]
    paused = next((not a.paused for a in actions if type(a) is SetPaused), live.run.paused)
    for place, action in enumerate(actions):
        kind = type(action)
        if kind is SetPaused:
            paused = action.paused
        elif kind is StartChild and not paused:
            ask = asking(live, action.node)
            if ask is not None and ask.call == call_id(action.task, action.attempt):
                asked += _ask(holder, live, ask, _input(live, actions, place))
        elif kind is CancelChild:
            asked.append(_cancel(live, action, actions[-1]))
    return asked


def _input(live: LiveRun, actions: Sequence[Any], place: int) -> Place:
    """Of the call whose StartChild stands there: they are recorded together, but for a further
    attempt."""
    action, before = actions[place], actions[place - 1]
    if isinstance(before, CreateTask) and before.task == action.task:
        return before.input
    stored = live.inputs.get(action.node)
    return None if stored is None else stored.place


def _cancel(live: LiveRun, action: CancelChild, last: Any) -> Outgoing:
    call = call_id(action.task, action.attempt)
    if action.awaited:
        return cancel_message((action.definition, action.id), call, ENDS)
    why = live.run.stopping
    if why is None and isinstance(last, FinishRun):
        why = last.failure
    return ChildCancel(call, f"{GAVE_UP}: {why.message}" if why else GAVE_UP)


def _ask(holder: Holder, live: LiveRun, ask: Asking, place: Place) -> Iterator[ChildStart]:
    """Of a call that is still wanted: the run it asks for, ready to be made. Where something has
    to be read first, it goes with a row of its own."""
    machine = live.machine
    if isinstance(machine, CodeMachine):
        definition = machine.child(ask.node, ask.task)
        if definition is None:
            return
    else:
        definition = holder.served.by_name.get(ask.child.definition)
    if definition is None or isinstance(place, tuple):
        live.fetching += 1
        holder.tasks.spawn(_read_and_ask(holder, live, ask, definition, place))
    else:
        yield _made(holder, live, ask, definition, place)


def _made(
    holder: Holder, live: LiveRun, ask: Asking, definition: Definition[Any, Any], input: Raw | None
) -> ChildStart:
    child, typed, former = ask.child, definition.typed, definition.aliases
    if holder.served.adopts and not holder.served.serves(definition):
        holder.served.add(definition)
    try:
        if input is not None:
            input = _crossing(holder, live, input, typed=typed)
        request = StartRequest(definition, child.id, input, trace=live.run.trace)
        owned = holder.births.takes(definition)
        beginning = begin(
            request, holder.deps, key=holder.ids.key(), worker=holder.worker, owned=owned,
            commit=holder.next_commit(), at_once=False,
        )  # fmt: skip
    except Exception as error:
        # It fails the call, unless the run is there already: one that is joined has its own input.
        return _refused(ask, error, former, typed=typed)
    if owned:
        holder.births.expect(ask.call, beginning)
    else:
        beginning.close()
    if not holder.served.serves(definition):
        _log.info(
            "%s/%s is a child of %s/%s and waits for a worker that serves %s: this one does not",
            child.definition, child.id, live.workflow, live.run_id, child.definition,
        )  # fmt: skip
    return ChildStart(
        ask.call, ask.node, (child.definition, child.id), beginning.row,
        to_publish(definition, holder.clock.now()), None, not child.detached, former, typed,
    )  # fmt: skip


def _crossing(holder: Holder, live: LiveRun, input: Raw, *, typed: bool) -> Raw:
    """An input as a child of that kind records it. A workflow has written it so already."""
    if isinstance(live.machine, CodeMachine) or typed == live.definition.typed:
        return input
    codec = holder.deps.codec
    return codec.sealed(input) if typed else codec.opened(input)


def _refused(
    ask: Asking, error: Exception, former: Sequence[str] = (), *, typed: bool = False
) -> ChildStart:
    child = ask.child
    refusal = msgspec.json.encode(record_failure(error, permanent=True))
    name = (child.definition, child.id)
    return ChildStart(
        ask.call, ask.node, name, None, None, refusal, not child.detached, former, typed
    )  # fmt: skip


# ---------------------------------------------------------------------- with a row of its own


def ask_when_due(holder: Holder, live: LiveRun, unread: Sequence[Mail], due: int) -> None:
    """`ask_again` of a run that was just loaded. A graph whose start was delayed asks when it is
    due, although somebody may have sent it something before."""
    graph = live.machine.may_ask and not isinstance(live.machine, CodeMachine)
    if graph and due > holder.clock.now():
        live.timers.arm(BEGIN, due, partial(ask_again, holder, live))
    else:
        ask_again(holder, live, unread)


def ask_again(
    holder: Holder, live: LiveRun, unread: Sequence[Mail] = (), *, all: bool = False
) -> None:
    """See that every call which waits for a run has asked for it; the store does nothing for one
    that has. `all`: also those that were answered, as after a move from another store."""
    if not live.machine.may_ask or live.run.paused or begins_at(live) is not None:
        return
    answered = {mail.id for mail in unread if mail.kind == STARTED}
    for node in list(live.run.nodes):
        ask = asking(live, node)
        if ask is None:
            continue
        known = ask.child.created is not None or started_id(ask.call) in answered
        if all or not known:
            stored = live.inputs.get(node)
            live.send(_ask(holder, live, ask, None if stored is None else stored.place))


async def _read_and_ask(
    holder: Holder,
    live: LiveRun,
    ask: Asking,
    definition: Definition[Any, Any] | None,
    place: Place,
) -> None:
    """What has to be read is; then it is asked, if that is still wanted."""
    name, made = ask.child.definition, None
    try:
        if definition is None:
            definition = await holder.served.find(name)
        if isinstance(place, tuple):
            place = Raw(await holder.read(live.key, place))
    except NotFound as error:
        made = _refused(ask, error)
    except PayloadMissing as error:
        live.stall(f"the input of the child {ask.node} is gone: {error}")
    except Exception as error:
        if not isinstance(error, PerdureError):
            _log.exception("%s/%s cannot go on", live.workflow, live.run_id)
        live.stall(f"node {ask.node} cannot start a run of {name} here: {error}")
    finally:
        live.fetching -= 1
    now = None if live.dead else asking(live, ask.node)
    if now is None or now.call != ask.call:
        return
    if made is None:
        assert definition is not None and not isinstance(place, tuple)  # noqa: PT018
        made = _made(holder, live, ask, definition, place)
    live.send((made,))
