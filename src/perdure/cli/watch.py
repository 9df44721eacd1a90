"""`perdure watch`: follow a run that others work on until its end, or all that are running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from perdure.cli.options import DurationType, RunName, RunNameType, json_option, store_option
from perdure.cli.outcome import tell_outcome
from perdure.cli.stores import command_of, existing

if TYPE_CHECKING:
    from perdure.cli.nodes import NodeBook
    from perdure.cli.progress import Progress
    from perdure.client.client import Client
    from perdure.client.run import Run
    from perdure.client.run_info import RunInfo
    from perdure.model.definition import Definition
    from perdure.model.errors import Failure

#: Seconds between looks.
LOOK: Final = 0.5


@click.command(short_help="Follow a run until its end, or all that run.")
@click.argument("name", type=RunNameType(), metavar="[WORKFLOW/ID]", required=False)
@click.option("--timeout", type=DurationType(), help="Watch no longer than this.")
@store_option
@json_option
def watch(name: RunName | None, timeout: float | None, store: str, as_json: bool) -> None:
    """Follow the run WORKFLOW/ID until its end, then print its output as JSON. Without one, show
    all runs that are running, as they go, until Ctrl-C.

    Watching works on nothing and changes nothing. Exits with 1 if the run failed, with 4 if it
    has not ended in time.
    """
    import asyncio

    from perdure.cli.nodes import NodeBook

    url = existing(store)
    if name is None:
        from perdure.cli.watch_all import watch_all

        asyncio.run(watch_all(url, timeout, as_json=as_json))
        return
    book = NodeBook(lambda *words: command_of("signal", str(name), *words, store=store))
    info, output, failure = asyncio.run(_watch(url, name, book, timeout))
    unended = "has not ended" if timeout is None else f"has not ended within {timeout:g} s"
    tell_outcome(name, info, output, failure, book, as_json=as_json, unended=unended)


async def _watch(
    store: str, name: RunName, book: NodeBook, seconds: float | None
) -> tuple[RunInfo, Any, Failure | None]:
    import asyncio

    from perdure.cli.progress import Progress
    from perdure.cli.screens import screen_for
    from perdure.client.client import Client
    from perdure.client.urls import store_of
    from perdure.model.errors import Failure

    async with Client(store_of(store, read_only=True)) as client:
        run = client.get(*name)
        with screen_for(book, await _definition(client, run)) as screen:
            following = asyncio.ensure_future(_follow(run, Progress(*name, book, screen)))
            await asyncio.wait({following}, timeout=seconds)
            if not following.done():
                following.cancel()
                await asyncio.wait({following})
            else:
                following.result()
        info = await run.describe()
        if info.status == "running":
            return info, None, None
        try:
            return info, await run.result(), None
        except Failure as failure:
            return info, None, failure


async def _follow(run: Run[Any], progress: Progress) -> None:
    import asyncio

    from perdure.model.status import TERMINAL

    progress.joined([record async for record in run.history()])
    row, stalled = await run._row(), None
    while row.status not in TERMINAL:
        if row.stalled is not None and row.stalled != stalled:
            progress.screen.note(f"{run} cannot go on: {row.stalled}")
        stalled, before = row.stalled, (row.epoch, row.mail, row.owner)
        await asyncio.sleep(LOOK)
        row = await run._row()
        if row.owner is not None or (row.epoch, row.mail, row.owner) != before:
            progress.follow([record async for record in run.history(after=progress.seen)])
    progress.follow([record async for record in run.history(after=progress.seen)])


async def _definition(client: Client, run: Run[Any]) -> Definition[Any, Any] | None:
    """The definition of the run's version, for the order of its nodes; None where code made it."""
    from perdure.drivers.native import rebuild
    from perdure.model.errors import NotFound

    try:
        return rebuild(await client._store.definition((await run._row()).hash))
    except NotFound:
        await run._row()  # there is no such run, or only its definition is not here
        return None
