"""What is sent to a run from outside: `signal`, `cancel`, `pause` and `unpause`.

Each writes a message into the run's mailbox, durable when the command returns. Whoever works on
the run reads it, at once in a process that holds it, else as soon as one looks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.inputs import read_value
from perdure.cli.options import RunName, RunNameType, existing, json_option, store_option
from perdure.cli.output import print_json

if TYPE_CHECKING:
    from perdure.client.run import Run, RunInfo


@click.command()
@click.argument("name", type=RunNameType(), metavar="WORKFLOW/ID")
@click.argument("signal_name", metavar="NAME")
@click.argument("value", metavar="[JSON]", required=False)
@click.option("--dedupe-key", metavar="KEY",
              help="Sent again with the same key, the signal counts once.")  # fmt: skip
@store_option
@json_option
def signal(
    name: RunName,
    signal_name: str,
    value: str | None,
    dedupe_key: str | None,
    store: str,
    as_json: bool,
) -> None:
    """Send the signal NAME to the run WORKFLOW/ID, with a value: JSON text, @file or - (stdin).

    A signal that no node waits for yet is kept for the one that will.
    """
    payload = read_value(value, "the value")

    async def send(run: Run[Any]) -> None:
        await run.signal(signal_name, payload, dedupe_key=dedupe_key)

    _sent(existing(store), name, send)
    if as_json:
        print_json({"workflow": name.workflow, "id": name.id, "signal": signal_name})
        return
    click.echo(f"signal {signal_name} is sent to {name}", err=True)
    awaited = _awaited(store, name)
    if signal_name not in awaited:
        others = [other for other, waits in awaited.items() if waits]
        hint = f"; what is waited for: {', '.join(others)}" if others else ""
        click.echo(f"no node has waited for it yet: it is kept{hint}", err=True)


@click.command()
@click.argument("name", type=RunNameType(), metavar="WORKFLOW/ID")
@click.option("--reason", default="", help="Why; recorded as the reason of what it ends.")
@store_option
@json_option
def cancel(name: RunName, reason: str, store: str, as_json: bool) -> None:
    """Ask the run WORKFLOW/ID to end now. One that has ended is left as it is."""
    _tell(name, _sent(existing(store), name, lambda run: run.cancel(reason)), "cancel", as_json)


@click.command()
@click.argument("name", type=RunNameType(), metavar="WORKFLOW/ID")
@store_option
@json_option
def pause(name: RunName, store: str, as_json: bool) -> None:
    """Let the run WORKFLOW/ID start nothing new, until it is unpaused.

    What is under way ends and is recorded; signals and timers are taken note of.
    """
    _tell(name, _sent(existing(store), name, lambda run: run.pause()), "pause", as_json)


@click.command()
@click.argument("name", type=RunNameType(), metavar="WORKFLOW/ID")
@store_option
@json_option
def unpause(name: RunName, store: str, as_json: bool) -> None:
    """Let the run WORKFLOW/ID go on after a pause. It also gives a stalled run another try."""
    _tell(name, _sent(existing(store), name, lambda run: run.unpause()), "unpause", as_json)


def _sent(store: str, name: RunName, send: Callable[[Run[Any]], Awaitable[object]]) -> RunInfo:
    import asyncio

    from perdure.client.client import Client

    async def main() -> RunInfo:
        async with Client(store) as client:
            run = client.get(*name)
            await send(run)
            return await run.describe()

    return asyncio.run(main())


def _awaited(store: str, name: RunName) -> dict[str, bool]:
    """The signals that nodes of the run wait for (True) or waited for."""
    import asyncio

    from perdure.cli.nodes import NodeBook
    from perdure.cli.show import load_run

    book = NodeBook()
    for record in asyncio.run(load_run(store, name))[1]:
        book.take(record)
    awaited: dict[str, bool] = {}
    for view in book.nodes.values():
        if view.signal:
            awaited[view.signal] = awaited.get(view.signal, False) or view.status == "waiting"
    return awaited


def _tell(name: RunName, info: RunInfo, what: str, as_json: bool) -> None:
    if as_json:
        print_json({"workflow": name.workflow, "id": name.id, "status": info.status})
    elif info.status == "running":
        click.echo(f"{what} is asked of {name}; whoever works on it reads it", err=True)
    else:
        click.echo(f"{name} has ended ({info.status})", err=True)
