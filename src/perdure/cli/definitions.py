"""`perdure definitions`: the versions that the store knows, their runs, and their documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.exits import NOT_FOUND, Trouble, usage
from perdure.cli.options import WorkflowType, json_option, store_option
from perdure.cli.output import instant, moment, print_json, table
from perdure.cli.say import json_text, say
from perdure.cli.stores import existing

if TYPE_CHECKING:
    from perdure.client.definitions import DefinitionInfo
    from perdure.stores.rows import StoredDefinition


@click.command(short_help="List versions, and print their documents.")
@click.argument("name", required=False, type=WorkflowType())
@click.option("--version", "version", metavar="LABEL|HASH", help="Only this version.")
@click.option("--source", is_flag=True, help="Print its document.")
@store_option
@json_option
def definitions(
    name: str | None, version: str | None, source: bool, store: str, as_json: bool
) -> None:
    """List the versions of definitions, of NAME or of all, the current one of each first.

    With --source the document of one version of NAME is printed, of the current one unless
    --version says which.
    """
    import asyncio

    if name is None and (version is not None or source):
        raise usage("name the definition whose version you mean: perdure definitions NAME …")
    known, stored = asyncio.run(_look(existing(store), name, version, source))
    if stored is not None:
        _print_source(stored, as_json)
        return
    if as_json:
        print_json({"definitions": [info_json(info) for info in known]})
        return
    if not known:
        say("no definitions: perdure publish FILE, or a start, makes one known", err=True)
        return
    head = ("NAME", "VERSION", "HASH", "PUBLISHED", "RUNNING", "ENDED", "")
    table(head, [_row(info) for info in known])


def info_json(info: DefinitionInfo) -> dict[str, Any]:
    """A version for programs."""
    return {
        "name": info.name,
        "version": info.version,
        "hash": info.hash,
        "kind": info.kind,
        "published": instant(info.published),
        "current": info.current,
        "running": info.running,
        "ended": info.ended,
    }


def _row(info: DefinitionInfo) -> tuple[str, ...]:
    return (
        info.name,
        info.version,
        info.hash[:12],
        moment(info.published),
        str(info.running),
        str(info.ended),
        "current" if info.current else "",
    )


def _print_source(stored: StoredDefinition, as_json: bool) -> None:
    if not stored.source:
        text = f"{stored.kind} {stored.name} is made by code: the store has no document of it"
        raise Trouble(text, NOT_FOUND, "not-found")
    document = json.loads(stored.source)
    if as_json:
        label = {"name": stored.name, "version": stored.version, "hash": stored.hash}
        print_json({**label, "document": document})
        return
    say(json_text(document, indent=2))


async def _look(
    store: str, name: str | None, version: str | None, source: bool
) -> tuple[list[DefinitionInfo], StoredDefinition | None]:
    from perdure.client.client import Client
    from perdure.client.definitions import choose, version_of
    from perdure.client.urls import store_of
    from perdure.model.errors import NotFound

    async with Client(store_of(store, read_only=True)) as client:
        try:
            if name is not None and source:
                return [], await version_of(client._store, name, version)
            known = await client.definitions(name)
            if name is not None and (version is not None or not known):
                known = [choose(known, name, version or "")]
        except NotFound as error:
            hint = "perdure definitions shows what is there"
            raise Trouble(f"{error}; {hint}", NOT_FOUND, "not-found") from None
        return known, None
