"""`perdure publish`: a document becomes the version that new runs of its name get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perdure.cli.app import check_steps, find_apps, load_apps
from perdure.cli.findings import findings_in
from perdure.cli.options import FileType, json_option, store_option
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.stores import shared

if TYPE_CHECKING:
    from perdure.client.definitions import DefinitionInfo
    from perdure.flow.registry import Registry
    from perdure.graph.definition import Graph
    from perdure.model.graph_rules import Finding


@click.command(short_help="Make a document the version new runs get.")
@click.argument("file", metavar="FILE", type=FileType())
@click.option("--app", "apps", multiple=True, metavar="APP", type=FileType(),
              help="Also check that the steps it calls are there.")  # fmt: skip
@click.option("--relabel", is_flag=True,
              help="Although its `version` is known with other content.")  # fmt: skip
@store_option
@json_option
def publish(file: str, apps: tuple[str, ...], relabel: bool, store: str, as_json: bool) -> None:
    """Make the document FILE the version that new runs of its name get. Starts nothing.

    Runs keep the version they have. Publishing an older document again takes a newer one back.
    """
    import asyncio

    from perdure.cli.target import document

    shared(store)
    graph = document(file)
    found = find_apps(apps)
    steps = load_apps(found) if found else None
    if steps is not None:
        check_steps(graph, steps, found, file)
    warnings = _warnings(file, steps)
    for warning in warnings:
        say(f"{warning.place(file)}: warning: {warning.text}", err=True)
    before, now = asyncio.run(_publish(store, graph, relabel))
    if as_json:
        print_json(_json(before, now, warnings))
        return
    _print(before, now)


def _warnings(file: str, known: Registry | None) -> list[Finding]:
    found = findings_in(file, known)
    return [finding for finding in found if finding.severity == "warning"]


async def _publish(
    store: str, graph: Graph, relabel: bool
) -> tuple[DefinitionInfo | None, DefinitionInfo]:
    """What was current, and what is now."""
    from perdure.client.client import Client

    async with Client(store) as client:
        known = await client.definitions(graph.name)
        return (known[0] if known else None), await client.publish(graph, relabel=relabel)


def _json(
    before: DefinitionInfo | None, now: DefinitionInfo, warnings: list[Finding]
) -> dict[str, Any]:
    from perdure.cli.definitions import info_json

    return {
        **info_json(now),
        "before": None if before is None else {"version": before.version, "hash": before.hash},
        "warnings": [str(warning) for warning in warnings],
    }


def _print(before: DefinitionInfo | None, now: DefinitionInfo) -> None:
    said = f"{now.name} version {now.version}"
    if before is None:
        say(f"{said} is published: new runs get it", err=True)
    elif before.hash == now.hash:
        say(f"{said} is current, as it was", err=True)
    else:
        kept = f"{before.running} run{'' if before.running == 1 else 's'} of version "
        keep = "keeps" if before.running == 1 else "keep"
        say(f"{said} is published: new runs get it, and no longer {before.version}", err=True)
        if before.running:
            say(f"{kept}{before.version} {keep} that", err=True)
