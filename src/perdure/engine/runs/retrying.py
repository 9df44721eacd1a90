"""Retrying a run that has ended, done by the caller as its short owner (store rule 11).

The caller claims the run, lets the machine decide, and writes one row; whoever claims the run then
goes on with it. What the machine refuses is raised to the caller, with nothing written. Mail that
came before the run ended and was never read is read with the same row: a signal is kept for the
run, anything else was meant for the end that came anyway.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

import msgspec
from msgspec import Raw

from perdure.codec.journal import encode_row
from perdure.engine.runs.coding import close
from perdure.engine.runs.ending import finish_of
from perdure.engine.runs.journal import Recorded, fetch_context, read_journal
from perdure.engine.runs.mailbox import event_of
from perdure.engine.runs.values import fetched
from perdure.kernel.actions import Ignored, Refused, Transition
from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.code.stuck import Stuck
from perdure.kernel.events import Event, RunRetried
from perdure.kernel.fold import fold_transition
from perdure.kernel.protocol import Deps, Loaded, Machine
from perdure.model.definition import Definition
from perdure.model.errors import NonDeterminism, PerdureError, StoreError
from perdure.stores.answers import Claim, LoadedRun, Mail, Verdict
from perdure.stores.port import Store
from perdure.stores.rows import Finish, JournalRow, Reopen, RunChange

_log = logging.getLogger("perdure.engine")

#: Tries at a commit whose outcome is unknown, and seconds before the second one; doubled each time.
TRIES: Final = 6
FIRST_DELAY: Final = 0.05


class RetryRequest(msgspec.Struct):
    """What a caller asks for: begin again at `node`, or (None) at every node that failed; input
    and config None keep what the run has."""

    definition: Definition[Any, Any]
    id: str
    node: str | None = None
    input: Raw | None = None
    config: Raw | None = None


class Writer(msgspec.Struct):
    """Who the short owner is: a worker's id, the numbers of its tries, and where it keeps the
    keys of runs that are in its hands."""

    worker: str
    next_commit: Callable[[], int]
    in_hand: set[bytes]


async def retry(store: Store, deps: Deps, request: RetryRequest, writer: Writer) -> None:
    """Let an ended run go on. Raises NotFound, RunActive while it has not ended, InvalidRequest
    for a node that is not there or an input that the definition refuses, NonDeterminism for code
    that does not do what it did, StoreError when another retry is under way."""
    if request.input is not None:
        request.definition.check_input(request.input, deps.codec)
    claim = await store.claim_finished(writer.worker, request.definition.name, request.id)
    writer.in_hand.add(claim.key)
    written = False
    try:
        row = await _decide(store, deps, request, writer, claim)
        written = await _commit(store, row)
    finally:
        writer.in_hand.discard(claim.key)  # first: the caller may be cancelled while giving back
        if not written:
            await asyncio.shield(_give_back(store, writer.worker, claim))
    if not written:
        raise StoreError(f"{request.definition.name}/{request.id} was changed meanwhile: try again")


async def _give_back(store: Store, worker: str, claim: Claim) -> None:
    try:
        await store.give_back(worker, claim, None)
    except StoreError as error:
        # Whoever finds it under a name that nobody has any more gives it back.
        _log.warning("run %s could not be given back: %s", claim.key.hex(), error)


async def _decide(
    store: Store, deps: Deps, request: RetryRequest, writer: Writer, claim: Claim
) -> JournalRow:
    loaded = await store.load(claim.key)
    recorded = read_journal(loaded)
    machine = cast("Machine", request.definition.machine(recorded.run, deps))
    try:
        return await _decided_by(machine, store, deps, request, writer, claim, loaded, recorded)
    except Stuck as stuck:
        raise NonDeterminism(f"nothing was retried: {stuck}") from stuck
    finally:
        # Whoever claims the run runs its code anew: what is left of this copy must do nothing.
        close(machine, f"{request.definition.name}/{request.id}")


async def _decided_by(
    machine: Machine, store: Store, deps: Deps, request: RetryRequest, writer: Writer,
    claim: Claim, loaded: LoadedRun, recorded: Recorded,
) -> JournalRow:  # fmt: skip
    definition = request.definition

    async def read(key: bytes, place: tuple[int, int]) -> bytes:
        return (await store.payloads(key, [place]))[0]

    await fetch_context(read, recorded, claim.key)
    if isinstance(machine, CodeMachine):
        machine.past = recorded.transitions
    now = deps.now()
    deadline = None if definition.max_duration is None else now + definition.max_duration
    event = RunRetried(request.node, request.input, request.config, deadline)
    transitions = [await _apply(store, machine, event, recorded, claim.key)]
    read_to = recorded.read
    if recorded.run.status == "running":
        for mail in loaded.mail:
            transitions.append(await _read(store, machine, mail, recorded, claim.key))
            read_to = mail.n
    if recorded.run.status == "running" and recorded.run.paused:
        _log.info(
            "%s/%s was paused and stays so: nothing starts until it is unpaused",
            definition.name, request.id,
        )  # fmt: skip
    body, payloads = encode_row(transitions)
    version, hash = definition.version, definition.hash
    change: RunChange | None = finish_of(transitions, payloads, definition)
    if isinstance(change, Finish):
        change = msgspec.structs.replace(change, version=version, hash=hash)
    else:
        change = Reopen(version, hash, now, deadline)
    return JournalRow(
        claim.key, recorded.seq + 1, transitions[-1].at, writer.worker, writer.next_commit(), body,
        claim.epoch, read_to, payloads, change,
    )  # fmt: skip


async def _read(
    store: Store, machine: Machine, mail: Mail, recorded: Recorded, key: bytes
) -> Transition:
    """A message that the run had not read when it ended."""
    run = recorded.run
    if mail.kind == "signal" and run.status == "running":
        try:
            transition = await _apply(store, machine, event_of(mail), recorded, key)
        except StoreError:
            raise
        except PerdureError as error:
            return _noted(recorded, Refused(str(error)))
        if transition.ignored is None:
            return transition
        return _noted(recorded, Ignored(transition.ignored))
    return _noted(recorded, Ignored("the run had ended before this was read"))


def _noted(recorded: Recorded, action: Ignored | Refused) -> Transition:
    transition = Transition(recorded.run.at, [action])
    fold_transition(recorded.run, transition)
    return transition


async def _apply(
    store: Store, machine: Machine, event: Event, recorded: Recorded, key: bytes
) -> Transition:
    """One decision, with what it needs read from the store."""
    decision = machine.apply(event)
    answer: Loaded | None = None
    while True:
        try:
            asked = next(decision) if answer is None else decision.send(answer)
        except StopIteration as stop:
            transition: Transition = stop.value
            return transition
        answer = await fetched(
            asked, recorded.outputs, recorded.signals, partial(store.payloads, key)
        )


async def _commit(store: Store, row: JournalRow) -> bool:
    """Write the row; False when it was refused. Raises StoreError when even its outcome is not
    known."""
    delay = FIRST_DELAY
    for number in range(1, TRIES + 1):
        try:
            verdict = await _send(store, row)
        except StoreError:
            if number == TRIES:
                raise
        else:
            if verdict != "busy":
                return verdict in ("accepted", "mine")
        await asyncio.sleep(delay)
        delay *= 2
    return False


async def _send(store: Store, row: JournalRow) -> Verdict:
    future: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()

    def done(answer: Sequence[Verdict] | Exception) -> None:
        if future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer[0])

    store.commit((row,), done)
    return await future
