"""`perdure retry`: a run that has ended goes on, from a node or from all that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perdure.cli.exits import usage
from perdure.cli.inputs import read_value
from perdure.cli.options import (
    RunName,
    RunNameType,
    command_of,
    existing,
    json_option,
    store_option,
)
from perdure.cli.output import print_json

if TYPE_CHECKING:
    from perdure.client.run import RunInfo


@click.command()
@click.argument("name", type=RunNameType(), metavar="WORKFLOW/ID")
@click.option("--from", "node", metavar="NODE",
              help="Do this node, and all that comes after it, again.")  # fmt: skip
@click.option("--failed", is_flag=True,
              help="Do every node that failed again (the default).")  # fmt: skip
@click.option("--input", "-i", "input_", metavar="JSON",
              help="Go on with another input: JSON text, @file or - (stdin).")  # fmt: skip
@store_option
@json_option
def retry(
    name: RunName, node: str | None, failed: bool, input_: str | None, store: str, as_json: bool
) -> None:
    """Let the ended run WORKFLOW/ID go on. What had completed is kept and not done again.

    A worker takes it, `perdure run FILE --id ID` is one. A run that was paused stays so: `perdure
    unpause` it.
    """
    import asyncio

    if node is not None and failed:
        raise usage("give --from NODE or --failed, not both")
    options: dict[str, Any] = {"failed": True} if node is None else {"from_node": node}
    if input_ is not None:
        options["input"] = read_value(input_, "--input")
    info, paused = asyncio.run(_retry(existing(store), name, options))
    if as_json:
        print_json({"workflow": name.workflow, "id": name.id, "status": info.status,
                    "version": info.version, "paused": paused})  # fmt: skip
        return
    start = "what failed" if node is None else f"node {node}"
    click.echo(f"{name} goes on from {start}, version {info.version}; a worker takes it", err=True)
    if paused:
        advice = command_of("unpause", str(name), store=store)
        click.echo(f"it was paused, and stays so: nothing starts until you do: {advice}", err=True)


async def _retry(store: str, name: RunName, options: dict[str, Any]) -> tuple[RunInfo, bool]:
    """The run as it is now, and whether it is paused."""
    from perdure.cli.nodes import NodeBook
    from perdure.client.client import Client

    book = NodeBook()
    async with Client(store) as client:
        run = client.get(*name)
        await run.retry(**options)
        async for record in run.history():
            book.take(record)
        info = await run.describe()
        return info, info.status == "running" and book.paused is not None
