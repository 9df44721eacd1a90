"""Moving runs between stores: what is exported, and what is checked before a run is let in.

A run that has not ended is imported paused and due for nobody: the store it came from may still
work on it, and two stores must never do so without somebody having said so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from perdure.client.run_info import info_of
from perdure.codec.journal import VALUES, decode_row
from perdure.drivers.native import rebuild
from perdure.engine.runs.journal import read_journal
from perdure.kernel.moves import IllegalMove
from perdure.model.durations import SECOND
from perdure.model.errors import InvalidRequest, NotFound, PerdureError, RunActive
from perdure.model.moments import moment
from perdure.model.names import check_name, check_run_id
from perdure.model.status import TERMINAL
from perdure.stores.answers import LoadedRun, Mail, StoredRow
from perdure.stores.moving import SavedRow, SavedRun
from perdure.stores.rows import StoredDefinition

if TYPE_CHECKING:
    from perdure.client.client import Client

#: How long an ended run is kept after its import when its definition cannot say, in µs.
KEPT: Final = 30 * 86_400 * SECOND


class Imported(msgspec.Struct, frozen=True):
    """What became of a run of a file. paused: it goes on when it is unpaused."""

    workflow: str
    id: str
    outcome: Literal["imported", "paused", "exists"]


async def saved_runs(
    client: Client, names: Iterable[tuple[str, str]], *, running: bool
) -> AsyncIterator[SavedRun]:
    """The runs, whole, one at a time. Raises NotFound, and RunActive for one that has not ended
    unless `running`."""
    await client._opened()
    for workflow, id in names:
        found = await client._store.describe(workflow, id)
        saved = await client._store.save(found.key)
        if saved.run.status not in TERMINAL and not running:
            raise RunActive(f"{workflow}/{id} has not ended")
        yield saved


def check(saved: SavedRun) -> None:
    """Raise InvalidRequest unless this is a run that this perdure can go on with."""
    name = f"{saved.run.definition}/{saved.run.id}"
    try:
        check_name(saved.run.definition)
        check_run_id(saved.run.id)
        _check_row(saved)
        _check_journal(saved)
        _check_mail(saved)
        _check_payloads(saved)
    except PerdureError as error:
        raise InvalidRequest(f"{name}: {error}") from error


def _check_row(saved: SavedRun) -> None:
    """What every list of runs shows of it, and times that a calendar has."""
    try:
        info_of(saved.run)
        for row in saved.journal:
            moment(row.at)
        if saved.definition is not None:
            moment(saved.definition.created)
        msgspec.json.decode(saved.run.metadata, type=dict[str, str])
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError) as error:
        raise InvalidRequest(f"its row cannot be read ({error})") from error
    if (saved.run.status in TERMINAL) != (saved.run.finished is not None):
        raise InvalidRequest(f"it is {saved.run.status}, and its row says another time of its end")
    if (made := saved.definition) is not None and made.name != saved.run.definition:
        raise InvalidRequest(f"its document is that of {made.name}")


def _check_journal(saved: SavedRun) -> None:
    rows = [StoredRow(r.seq, r.at, r.writer, r.body, r.read) for r in saved.journal]
    try:
        recorded = read_journal(LoadedRun(saved.run, rows))
    except (IllegalMove, LookupError, ValueError, TypeError) as error:
        raise InvalidRequest(f"its journal does not hold together ({error})") from error
    if not rows:
        raise InvalidRequest("it has no journal")
    if recorded.run.status != saved.run.status:
        raise InvalidRequest(
            f"its journal says that it is {recorded.run.status}, its row: {saved.run.status}"
        )
    if (recorded.run.definition, recorded.run.id) != (saved.run.definition, saved.run.id):
        raise InvalidRequest("its journal is another run's")


def _check_mail(saved: SavedRun) -> None:
    if [m.n for m in saved.mail] != list(range(1, len(saved.mail) + 1)):
        raise InvalidRequest("its mail has gaps")
    if len({m.id for m in saved.mail}) != len(saved.mail):
        raise InvalidRequest("two of its messages have one id")
    if saved.journal[-1].read > len(saved.mail):
        raise InvalidRequest("its journal has read more mail than there is")


def _check_payloads(saved: SavedRun) -> None:
    there = {(p.seq, p.n) for p in saved.payloads}
    if len(there) != len(saved.payloads):
        raise InvalidRequest("two of its payloads have one number")
    needed = [place for row in saved.journal for place in _places(row)]
    if saved.run.output_at is not None:
        needed.append(saved.run.output_at)
    missing = [place for place in needed if place not in there]
    if missing:
        raise InvalidRequest(f"the payload {missing[0][1]} of its row {missing[0][0]} is missing")


def _places(row: SavedRow) -> Iterable[tuple[int, int]]:
    for transition in decode_row(row.body):
        for action in transition.actions:
            for name in VALUES:
                n = getattr(action, f"{name}_ref", None)
                if n is not None:
                    yield row.seq, n


async def existing(client: Client, names: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of these runs, those that are there already."""
    await client._opened()
    return [name for name in names if await _is_there(client, *name)]


async def _is_there(client: Client, workflow: str, id: str) -> bool:
    try:
        await client._store.describe(workflow, id)
    except NotFound:
        return False
    return True


async def import_run(client: Client, saved: SavedRun) -> Imported:
    """Let a run in that was checked, whole or not at all. One that is there is left as it is."""
    await client._opened()
    goes_on = saved.run.status not in TERMINAL
    purge_at = None
    if goes_on:
        saved = _paused(saved, client._ids.text)
    else:
        purge_at = client._clock.now() + _retention(saved.definition)
    started = await client._store.restore(saved, purge_at)
    outcome: Literal["imported", "paused", "exists"] = "paused" if goes_on else "imported"
    if started.outcome != "created":
        outcome = "exists"
    return Imported(saved.run.definition, saved.run.id, outcome)


def _paused(saved: SavedRun, new_id: Callable[[], str]) -> SavedRun:
    """The last message it reads before it goes on is a pause."""
    mail: Sequence[Mail] = saved.mail
    pause = Mail(len(mail) + 1, f"import-{new_id()}", "pause")
    return msgspec.structs.replace(saved, mail=[*mail, pause])


def _retention(definition: StoredDefinition | None) -> int:
    if definition is None:
        return KEPT
    try:
        return rebuild(definition).retention
    except PerdureError:
        return KEPT
