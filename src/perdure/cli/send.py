"""What is sent to a run from outside: `signal`, `cancel`, `pause` and `unpause`.

Each writes a message into the run's mailbox, durable when the command returns. Whoever works on
the run reads it, at once in a process that holds it, else as soon as one looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perdure.cli.bulk import Act, Bulk, bulk_options, chosen, many, one
from perdure.cli.exits import NOT_FOUND, Trouble, usage
from perdure.cli.inputs import read_value
from perdure.cli.options import (
    FileType,
    RunName,
    RunNameType,
    RunOrTextType,
    json_option,
    store_option,
)
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.stores import command_of, existing

if TYPE_CHECKING:
    from perdure.cli.mailboxes import Mailboxes
    from perdure.client.run import Run


@click.command(short_help="Send a run, or many, a signal.")
@click.argument("words", metavar="[WORKFLOW/ID] NAME [JSON]", nargs=-1, type=RunOrTextType())
@click.option("--dedupe-key", metavar="KEY",
              help="Sent again with the same key, the signal counts once.")  # fmt: skip
@click.option("--app", "apps", multiple=True, metavar="APP", type=FileType(),
              help="Where the code of a workflow in Python is: the value is checked.")  # fmt: skip
@bulk_options
@store_option
@json_option
def signal(
    words: tuple[str, ...],
    dedupe_key: str | None,
    apps: tuple[str, ...],
    bulk: Bulk,
    store: str,
    as_json: bool,
) -> None:
    """Send the signal NAME to the run WORKFLOW/ID, with a value: JSON text, @file or - (stdin).

    A signal that no node waits for yet is kept for the one that will. With --where it goes to
    many runs, and WORKFLOW/ID is left out. A value that the code of a workflow could not read is
    not sent, where that code is here: --app, or [tool.perdure] app in pyproject.toml.
    """
    name, signal_name, value = _addressed(words, bulk)
    payload = read_value(value, "the value")
    from perdure.cli.mailboxes import Mailboxes
    from perdure.model.errors import InvalidRequest, NotFound

    mailboxes = Mailboxes(apps)

    async def send(run: Run[Any]) -> None:
        try:
            await mailboxes.check(run, signal_name, payload)
        except InvalidRequest as error:
            raise InvalidRequest(f"{error}; nothing was sent to {run}") from None
        await run.signal(signal_name, payload, dedupe_key=dedupe_key)

    if name is None:
        many(existing(store), bulk, send, f"signal {signal_name}", ("running",), as_json)
        _say_unchecked(mailboxes)
        return
    try:
        one(existing(store), name, send)
    except NotFound as error:
        if "has ended" not in str(error):
            raise
        hint = f"{command_of('show', str(name), store=store)} shows how"
        raise Trouble(f"{error}; {hint}", NOT_FOUND, "not-found") from None
    if as_json:
        print_json({"workflow": name.workflow, "id": name.id, "signal": signal_name,
                    "checked": mailboxes.checked})  # fmt: skip
        return
    say(f"signal {signal_name} is sent to {name}", err=True)
    _say_unchecked(mailboxes)
    awaited = _awaited(store, name)
    if signal_name not in awaited:
        others = [other for other, waits in awaited.items() if waits]
        hint = f"; what is waited for: {', '.join(others)}" if others else ""
        say(f"no node has waited for it yet: it is kept{hint}", err=True)


def _say_unchecked(mailboxes: Mailboxes) -> None:
    for why in mailboxes.unchecked.values():
        say(f"the value was not checked: {why}", err=True)


def _addressed(words: tuple[str, ...], bulk: Bulk) -> tuple[RunName | None, str, str | None]:
    """The run (None with --where), the signal's name, and its value."""
    rest = list(words)
    first = None if bulk.where or not rest else rest.pop(0)
    name = None if first is None else RunNameType().convert(first, None, None)
    chosen(name, bulk)
    if not 1 <= len(rest) <= 2:
        shape = "--where KEY=VALUE NAME [JSON]" if bulk.where else "WORKFLOW/ID NAME [JSON]"
        raise usage(f"write perdure signal {shape}")
    return name, rest[0], rest[1] if len(rest) == 2 else None


@click.command(short_help="Ask a run, or many, to end now.")
@click.argument("name", type=RunNameType(), metavar="[WORKFLOW/ID]", required=False)
@click.option("--reason", default="", help="Why; recorded as the reason of what it ends.")
@bulk_options
@store_option
@json_option
def cancel(name: RunName | None, reason: str, bulk: Bulk, store: str, as_json: bool) -> None:
    """Ask the run WORKFLOW/ID to end now, or all runs --where says. One that has ended is left as
    it is."""
    _tell(name, bulk, lambda run: run.cancel(reason), "cancel", store, as_json)


@click.command(short_help="Let a run, or many, start nothing new.")
@click.argument("name", type=RunNameType(), metavar="[WORKFLOW/ID]", required=False)
@bulk_options
@store_option
@json_option
def pause(name: RunName | None, bulk: Bulk, store: str, as_json: bool) -> None:
    """Let the run WORKFLOW/ID, or all runs --where says, start nothing new, until unpaused.

    What is under way ends and is recorded; signals and timers are taken note of.
    """
    _tell(name, bulk, lambda run: run.pause(), "pause", store, as_json)


@click.command(short_help="Let a paused or stalled run, or many, go on.")
@click.argument("name", type=RunNameType(), metavar="[WORKFLOW/ID]", required=False)
@bulk_options
@store_option
@json_option
def unpause(name: RunName | None, bulk: Bulk, store: str, as_json: bool) -> None:
    """Let the run WORKFLOW/ID, or all runs --where says, go on after a pause. It also gives a
    stalled run another try."""
    _tell(name, bulk, lambda run: run.unpause(), "unpause", store, as_json)


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


def _tell(name: RunName | None, bulk: Bulk, act: Act, what: str, store: str, as_json: bool) -> None:
    if chosen(name, bulk) is None:
        many(existing(store), bulk, act, what, ("running",), as_json)
        return
    assert name is not None
    info = one(existing(store), name, act)
    if as_json:
        print_json({"workflow": name.workflow, "id": name.id, "status": info.status})
    elif info.status == "running":
        say(f"{what} is asked of {name}; whoever works on it reads it", err=True)
    else:
        say(f"{name} has ended ({info.status})", err=True)
