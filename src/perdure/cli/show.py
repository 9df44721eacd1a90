"""`perdure show`: one run, its nodes, and on demand everything that was recorded of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from perdure.cli.options import RunName, RunNameType, json_option, store_option
from perdure.cli.output import clock, instant, moment, print_json, run_json, shortened, table, took
from perdure.cli.say import on_one_line, say
from perdure.cli.stores import existing

if TYPE_CHECKING:
    from perdure.cli.node_view import NodeView
    from perdure.cli.nodes import NodeBook
    from perdure.client.run_info import RunInfo
    from perdure.stores.answers import Mail, RunRow, WorkerSeen


@click.command(short_help="Show a run: its nodes, what each gave.")
@click.argument("name", type=RunNameType(), metavar="WORKFLOW/ID")
@click.option("--history", is_flag=True, help="Also show every record, oldest first.")
@store_option
@json_option
def show(name: RunName, history: bool, store: str, as_json: bool) -> None:
    """Show the run WORKFLOW/ID: its status, its nodes, what each gave."""
    import asyncio

    from perdure.cli.holding import owner_json
    from perdure.cli.nodes import NodeBook

    info, records, standing = asyncio.run(_load(existing(store), name))
    book = NodeBook()
    for record in records:
        book.take(record)
    if as_json:
        held_by = owner_json(standing.row, standing.owner)
        document = {
            **run_json(info),
            "held_by": held_by,
            "nodes": [_node_json(view) for view in book.nodes.values()],
        }
        if history:
            document["history"] = [{**r, "time": instant(r["time"])} for r in records]
        print_json(document)
        return
    _print_run(info, _pause(standing, book), book.undoing)
    if info.status == "running":
        _print_holder(standing, book)
    if book.nodes:
        say()
        head = ("NODE", "STATUS", "ATTEMPT", "TOOK", "OUTPUT")
        table(head, [_node_row(view, info) for view in book.nodes.values()])
    if history:
        say()
        _print_history(records)


class _Standing(NamedTuple):
    """Who works on it. `alive`: workers that are. `mail`: what it has not read yet."""

    row: RunRow
    owner: WorkerSeen | None
    alive: int
    mail: Sequence[Mail]


async def load_run(store: str, name: RunName) -> tuple[RunInfo, list[Mapping[str, Any]]]:
    """A run and its history. Raises NotFound, StoreError."""
    info, records, _ = await _load(store, name)
    return info, records


async def _load(store: str, name: RunName) -> tuple[RunInfo, list[Mapping[str, Any]], _Standing]:
    from perdure.cli.holding import owner_of
    from perdure.client.client import Client
    from perdure.client.run_info import info_of
    from perdure.client.urls import store_of
    from perdure.model.status import TERMINAL

    async with Client(store_of(store, read_only=True)) as client:
        run = client.get(*name)
        row = await run._row()
        records = [record async for record in run.history()]
        workers = await client._store.workers()
        alive = sum(seen.alive for seen in workers)
        ended = row.status in TERMINAL
        mail = () if ended else (await client._store.load(row.key)).mail
        return info_of(row), records, _Standing(row, owner_of(row, workers), alive, mail)


def _print_holder(standing: _Standing, book: NodeBook) -> None:
    from perdure.cli.holding import due_since, holder, untaken

    now = datetime.now(UTC)
    since = due_since(standing.row, now)
    if since is None:
        said = holder(standing.row, book, standing.owner).removeprefix("held by ")
        say(f"worker    {said.removeprefix('worker ')}")
        return
    text, advice = untaken(standing.row, since, now, standing.alive)
    say(f"worker    none: {text}\n          -> {advice}")


def _node_json(view: NodeView) -> dict[str, Any]:
    return {
        "node": view.node,
        "status": view.status,
        "attempt": view.attempt,
        "restarts": view.lost,
        "started": None if view.since is None else instant(view.since),
        "ended": None if view.ended is None else instant(view.ended),
        "output": view.output,
        "failure": _failure_json(view),
        "branches": view.branches,
        "signal": view.signal,
        "until": None if view.wake_at is None else instant(view.wake_at),
    }


def _failure_json(view: NodeView) -> dict[str, Any] | None:
    """What it failed of, or its last attempt did; of one that completed nothing."""
    if view.failure is None or view.status == "completed":
        return None
    return {key: view.failure.get(key) for key in ("kind", "message", "details")}


def _unsaid(*words: str) -> str:
    return ""  # what to do is told by `why`


def _pause(standing: _Standing, book: NodeBook) -> str:
    """That it is paused, since when or why; empty of any other run."""
    from perdure.cli.waiting import Standing, causes

    found = causes(Standing(standing.row, book, standing.mail), datetime.now(UTC), _unsaid)
    return next((c.text.removeprefix("it is paused, ") for c in found if c.kind == "paused"), "")


def _print_run(info: RunInfo, paused: str, undoing: str) -> None:
    from perdure.cli.calls import stalled
    from perdure.cli.reasons import run_reason

    end = info.finished or datetime.now(UTC)
    length = took((end - info.created).total_seconds())
    lines = [
        ("run", f"{info.workflow}/{info.id}"),
        ("status", f"running for {length}" if info.status == "running" else info.status),
        ("version", info.version),
        ("started", moment(info.created)),
    ]
    if info.finished is not None:
        lines.append(("ended", f"{moment(info.finished)} (took {length})"))
    if info.stalled is not None:
        lines += zip(("stalled", "", "", ""), stalled(info.stalled), strict=False)
    if paused:
        lines.append(("paused", paused))
    if undoing and info.status == "running":
        lines.append(("undoing", undoing))
    if info.failure is not None:
        failure = info.failure
        why = run_reason(failure.kind, str(failure), failure.details)
        lines.append(("failure", why))
    if info.metadata:
        lines.append(
            ("metadata", on_one_line(", ".join(f"{k}={v}" for k, v in info.metadata.items())))
        )
    for title, text in lines:
        say(f"{title.ljust(8)}  {text}")


def _node_row(view: NodeView, info: RunInfo) -> Sequence[str]:
    attempt = str(view.attempt) if view.attempt else "-"
    if view.lost:
        attempt += f" (begun again {view.lost}×)"
    return view.node, view.status, attempt, _took(view, info), _outcome(view)


def _took(view: NodeView, info: RunInfo) -> str:
    if view.since is None:
        return "-"
    if view.ended is not None:
        return took((view.ended - view.since).total_seconds())
    wait = (view.since - datetime.now(UTC)).total_seconds()
    return f"due in {took(wait)}" if wait > 0 else f"{took(-wait)} so far"


def _outcome(view: NodeView) -> str:
    from perdure.cli.calls import given_up
    from perdure.cli.reasons import reason

    if view.status == "waiting":
        return view.waits
    if view.branches is not None:
        return f"chose {', '.join(view.branches) or 'nothing'}"
    if view.status == "pending" and view.child is not None:
        return f"waits for run {view.child}"
    if view.status == "canceled" and (said := given_up(view.node, view.failure)):
        return said
    if view.failure is not None and view.status != "completed":
        return shortened(reason(str(view.failure["kind"]), str(view.failure["message"])))
    return shortened(view.output) if view.status == "completed" else ""


#: What the columns of the history already say.
_SAID: Final = frozenset({"seq", "time", "writer", "do", "node", "task"})


def _print_history(records: Sequence[Mapping[str, Any]]) -> None:
    rows = []
    for record in records:
        rest = {key: value for key, value in record.items() if key not in _SAID}
        text = " ".join(f"{key}={_value(key, value)}" for key, value in rest.items())
        rows.append((clock(record["time"]), record["do"], record.get("node", ""), text))
    table(("TIME", "RECORD", "NODE", "WHAT"), rows)


#: Moments, which are recorded as microseconds.
_MOMENTS: Final = frozenset({"deadline", "not_before", "wake_at"})


def _value(key: str, value: Any) -> str:
    if key in _MOMENTS and isinstance(value, int):
        from perdure.model import moments

        return moment(moments.moment(value)) if value else "-"
    return shortened(value, 60)
