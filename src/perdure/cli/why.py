"""`perdure why`: what a run waits for, since when, who holds it, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.options import RunName, RunNameType, json_option, store_option
from perdure.cli.output import instant, moment_near, print_json, run_json, took
from perdure.cli.say import say
from perdure.cli.stores import command_of, existing

if TYPE_CHECKING:
    from perdure.cli.waiting import Cause, Standing
    from perdure.client.client import Client
    from perdure.client.run_info import RunInfo
    from perdure.stores.answers import RunRow, WorkerSeen


@click.command(short_help="Say what a run waits for, and what to do.")
@click.argument("name", type=RunNameType(), metavar="WORKFLOW/ID")
@store_option
@json_option
def why(name: RunName, store: str, as_json: bool) -> None:
    """Say what the run WORKFLOW/ID waits for, since when, who holds it, and what to do.

    Of a run that has ended: how, and why it failed.
    """
    import asyncio

    from perdure.cli.waiting import causes
    from perdure.client.run_info import info_of
    from perdure.model.status import TERMINAL

    standing, owner, current = asyncio.run(_load(existing(store), name))
    row, now = standing.row, datetime.now(UTC)
    found: Sequence[Cause] = ()
    if row.status not in TERMINAL:
        found = causes(standing, now, lambda *words: command_of(*words, store=store))
    if as_json:
        print_json(_json(standing, info_of(row), found, owner, current))
    elif row.status in TERMINAL:
        _print_ended(standing, info_of(row), store)
    else:
        _print_running(standing, info_of(row), found, owner, current)


async def _load(store: str, name: RunName) -> tuple[Standing, WorkerSeen | None, str | None]:
    """How it stands, who holds it, and the current version of its definition."""
    from perdure.cli.holding import owner_of
    from perdure.cli.nodes import NodeBook
    from perdure.cli.waiting import Standing
    from perdure.client.client import Client
    from perdure.client.urls import store_of
    from perdure.model.errors import NotFound

    book = NodeBook()
    async with Client(store_of(store, read_only=True)) as client:
        run = client.get(*name)
        row = await run._row()
        async for record in run.history():
            book.take(record)
        loaded = await client._store.load(row.key)
        workers = await client._store.workers()
        try:
            current = (await client._store.latest_definition(name.workflow)).version
        except NotFound:
            current = None
        attempts = await _attempts(client, row)
        alive = sum(seen.alive for seen in workers)
        standing = Standing(loaded.run, book, loaded.mail, attempts, alive)
        return standing, owner_of(loaded.run, workers), current


async def _attempts(client: Client, row: RunRow) -> Mapping[str, int]:
    """Of nodes whose document says it, how many attempts there are at most."""
    from perdure.drivers.native import rebuild
    from perdure.graph.definition import Graph
    from perdure.model.errors import PerdureError

    try:
        graph = rebuild(await client._store.definition(row.hash))
    except PerdureError:
        return {}
    if not isinstance(graph, Graph):
        return {}
    nodes = graph.plan.nodes.values()
    return {node.id: node.retry.attempts for node in nodes if node.retry is not None}


def _print_ended(standing: Standing, info: RunInfo, store: str) -> None:
    from perdure.cli.app import find_apps
    from perdure.cli.failed import done_again, failed_run

    name = f"{info.workflow}/{info.id}"
    ended = "" if info.finished is None else f" at {moment_near(info.finished)}"
    if info.failure is None:
        say(f"{name} has {info.status}{ended}: it waits for nothing")
        return
    said = failed_run(name, info.status, info.failure, standing.book, before=True)
    say(said.removeprefix("perdure: "))
    given_up = [view.node for view in standing.book.having("canceled")]
    if given_up and not standing.book.code:
        say(f"  given up with it: {', '.join(given_up)}")
    here = not standing.book.code or find_apps(())  # a retry runs it
    again = command_of("retry", name, *(() if here else ("--app", "FILE.py")), store=store)
    what = done_again(info.failure)
    what = what[0].upper() + what[1:]
    say(f"It ended{ended}, version {info.version}. {what} is done again by: {again}")


def _print_running(
    standing: Standing,
    info: RunInfo,
    found: Sequence[Cause],
    owner: WorkerSeen | None,
    current: str | None,
) -> None:
    from perdure.cli.holding import holder
    from perdure.cli.waiting import next_due

    now, row = datetime.now(UTC), standing.row
    length = took((now - info.created).total_seconds())
    newer = f", {current} is current" if current not in (None, info.version) else ""
    say(f"{info.workflow}/{info.id} has run for {length} (version {info.version}{newer})")
    if standing.book.undoing:
        say(f"what it did is being undone: {standing.book.undoing}")
    width = max((len(cause.node) for cause in found), default=0)
    for cause in found:
        indent = cause.node.ljust(width) + "  " if cause.node else ""
        say(f"{indent}{cause.text}")
        if cause.advice:
            say(f"{' ' * len(indent)}  -> {cause.advice}")
    if not found:
        say("it is between two nodes: ask again")
    say(holder(row, standing.book, owner))
    due = next_due(row, standing.book)
    if due is not None and due > now:
        say(f"next due at {moment_near(due)}")
    if standing.book.deadline is not None and not standing.book.undoing:  # which has no end
        left = (standing.book.deadline - now).total_seconds()
        over = f"in {took(left)}" if left > 0 else "which is over"
        say(f"fails unless it ends by {moment_near(standing.book.deadline)} ({over})")
    if row.crashes:
        say(f"its worker died {row.crashes} time(s) in a row without a step being recorded")


def _json(
    standing: Standing,
    info: RunInfo,
    found: Sequence[Cause],
    owner: WorkerSeen | None,
    current: str | None,
) -> dict[str, Any]:
    from perdure.cli.holding import owner_json
    from perdure.cli.waiting import next_due

    row, book = standing.row, standing.book
    due = None if info.finished is not None else next_due(row, book)
    return {
        **run_json(info),
        "current_version": current,
        "held_by": owner_json(row, owner),
        "paused": None if book.paused is None else instant(book.paused),
        "next_due": None if due is None else instant(due),
        "deadline": None if book.deadline is None else instant(book.deadline),
        "crashes": row.crashes,
        "unread": len(standing.mail),
        "waits_for": [_cause_json(cause) for cause in found],
        "failed": [
            {
                "node": view.node,
                "errors": [{"attempt": n, **failure} for n, failure in view.errors],
                "failure": view.failure,
            }
            for view in book.having("failed")
        ],
    }


def _cause_json(cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind,
        "node": cause.node or None,
        "text": cause.text,
        "since": None if cause.since is None else instant(cause.since),
        "until": None if cause.until is None else instant(cause.until),
        "advice": cause.advice or None,
    }
