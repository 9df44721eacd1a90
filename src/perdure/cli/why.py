"""`perdure why`: what a run waits for, since when, who holds it, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.options import (
    RunName,
    RunNameType,
    command_of,
    existing,
    json_option,
    store_option,
)
from perdure.cli.output import instant, moment_near, print_json, run_json, took

if TYPE_CHECKING:
    from perdure.cli.nodes import NodeBook
    from perdure.cli.waiting import Cause
    from perdure.client.run import RunInfo
    from perdure.stores.port import RunRow, WorkerSeen


@click.command()
@click.argument("name", type=RunNameType(), metavar="WORKFLOW/ID")
@store_option
@json_option
def why(name: RunName, store: str, as_json: bool) -> None:
    """Say what the run WORKFLOW/ID waits for, since when, who holds it, and what to do."""
    import asyncio

    from perdure.cli.waiting import causes
    from perdure.client.run import info_of
    from perdure.model.status import TERMINAL

    row, book, unread, owner = asyncio.run(_load(existing(store), name))
    now = datetime.now(UTC)
    found: Sequence[Cause] = ()
    if row.status not in TERMINAL:
        found = causes(row, book, unread, now, lambda *words: command_of(*words, store=store))
    if as_json:
        print_json(_json(row, info_of(row), book, unread, found, owner))
        return
    if row.status in TERMINAL:
        _print_ended(str(name), info_of(row), book, store)
        return
    _print_running(row, info_of(row), book, found, owner)


async def _load(store: str, name: RunName) -> tuple[RunRow, NodeBook, int, WorkerSeen | None]:
    from perdure.cli.nodes import NodeBook
    from perdure.client.client import Client

    book = NodeBook()
    async with Client(store) as client:
        run = client.get(*name)
        row = await run._row()
        async for record in run.history():
            book.take(record)
        unread = len((await client._store.load(row.key)).mail)
        workers = {seen.info.id: seen for seen in await client._store.workers()}
        return row, book, unread, workers.get(row.owner or "")


def _print_ended(name: str, info: RunInfo, book: NodeBook, store: str) -> None:
    from perdure.cli.failed import failed_run

    ended = "" if info.finished is None else f" at {moment_near(info.finished)}"
    if info.failure is None:
        click.echo(f"{name} has {info.status}{ended}: it waits for nothing")
        return
    click.echo(failed_run(name, info.status, info.failure, book).removeprefix("perdure: "))
    click.echo(f"It ended{ended}. What failed is done again by: {_again(name, store)}")


def _again(name: str, store: str) -> str:
    return command_of("retry", name, store=store)


def _print_running(
    row: RunRow, info: RunInfo, book: NodeBook, found: Sequence[Cause], owner: WorkerSeen | None
) -> None:
    from perdure.cli.waiting import next_due

    now = datetime.now(UTC)
    length = took((now - info.created).total_seconds())
    click.echo(f"{info.workflow}/{info.id} has run for {length}")
    width = max((len(cause.node) for cause in found), default=0)
    for cause in found:
        indent = cause.node.ljust(width) + "  " if cause.node else ""
        click.echo(f"{indent}{cause.text}")
        if cause.advice:
            click.echo(f"{' ' * len(indent)}  -> {cause.advice}")
    if not found:
        click.echo("it is between two nodes: ask again")
    click.echo(_holder(row, book, owner))
    due = next_due(row, book)
    if due is not None and due > now:
        click.echo(f"next due at {moment_near(due)}")
    if row.crashes:
        click.echo(f"its worker died {row.crashes} time(s) in a row without a step being recorded")


def _holder(row: RunRow, book: NodeBook, owner: WorkerSeen | None) -> str:
    if row.owner is not None:
        if owner is None:
            return "held by a worker that is gone: the next one takes it over"
        who = f"{owner.info.name} (process {owner.info.pid} on {owner.info.host})"
        gone = "" if owner.alive else ", which is gone: the next one takes it over"
        return f"held by worker {who}{gone}"
    if row.stalled is not None or book.having("pending"):
        return "held by no worker"
    return "held by no worker: it only waits"


def _json(
    row: RunRow,
    info: RunInfo,
    book: NodeBook,
    unread: int,
    found: Sequence[Cause],
    owner: WorkerSeen | None,
) -> dict[str, Any]:
    from perdure.cli.waiting import next_due

    due = None if info.finished is not None else next_due(row, book)
    return {
        **run_json(info),
        "held_by": _owner_json(row, owner),
        "paused": None if book.paused is None else instant(book.paused),
        "next_due": None if due is None else instant(due),
        "crashes": row.crashes,
        "unread": unread,
        "waits_for": [
            {
                "kind": cause.kind,
                "node": cause.node or None,
                "text": cause.text,
                "since": None if cause.since is None else instant(cause.since),
                "until": None if cause.until is None else instant(cause.until),
                "advice": cause.advice or None,
            }
            for cause in found
        ],
    }


def _owner_json(row: RunRow, owner: WorkerSeen | None) -> dict[str, Any] | None:
    if row.owner is None:
        return None
    known = {} if owner is None else {
        "name": owner.info.name, "host": owner.info.host, "pid": owner.info.pid,
    }  # fmt: skip
    return {"worker": row.owner, **known, "alive": owner is not None and owner.alive}
