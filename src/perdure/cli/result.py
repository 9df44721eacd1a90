"""`perdure result`: the outcome of a run, now or when it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perdure.cli.options import DurationType, RunName, RunNameType, json_option, store_option
from perdure.cli.outcome import tell_outcome
from perdure.cli.stores import existing

if TYPE_CHECKING:
    from perdure.cli.nodes import NodeBook
    from perdure.client.run_info import RunInfo
    from perdure.model.errors import Failure


@click.command(short_help="Print the output of a run.")
@click.argument("name", type=RunNameType(), metavar="WORKFLOW/ID")
@click.option("--wait", is_flag=True, help="Wait for the end if it has not ended.")
@click.option("--timeout", type=DurationType(), help="Wait, but no longer than this.")
@store_option
@json_option
def result(name: RunName, wait: bool, timeout: float | None, store: str, as_json: bool) -> None:
    """Print the output of the run WORKFLOW/ID as JSON.

    Exits with 1 if it failed, with 4 if it has not ended (yet).
    """
    import asyncio

    seconds = timeout if timeout is not None else None if wait else 0
    info, output, failure, book = asyncio.run(_result(existing(store), name, seconds))
    stalled = f"; it cannot go on: {info.stalled}" if info.stalled else ""
    hint = "" if seconds else "; --wait waits for its end"
    unended = f"has not ended{stalled}{hint}"
    tell_outcome(name, info, output, failure, book, as_json=as_json, unended=unended)


async def _result(
    store: str, name: RunName, seconds: float | None
) -> tuple[RunInfo, Any, Failure | None, NodeBook]:
    import asyncio

    from perdure.cli.nodes import NodeBook
    from perdure.client.client import Client
    from perdure.client.urls import store_of
    from perdure.model.errors import Failure

    book = NodeBook()
    async with Client(store_of(store, read_only=True)) as client:
        run = client.get(*name)
        info = await run.describe()
        if info.status == "running" and seconds != 0:
            waiting = asyncio.ensure_future(run.result())
            await asyncio.wait({waiting}, timeout=seconds)
            waiting.cancel()
            await asyncio.wait({waiting})
            info = await run.describe()
        if info.status == "running":
            return info, None, None, book
        try:
            return info, await run.result(), None, book
        except Failure as failure:
            async for record in run.history():
                book.take(record)
            return info, None, failure, book
