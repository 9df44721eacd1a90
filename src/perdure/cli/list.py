"""`perdure list`: the runs in a store, newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from perdure.cli.options import WorkflowType, json_option, store_option
from perdure.cli.output import moment, print_json, run_json, table, took
from perdure.cli.say import say
from perdure.cli.stores import existing
from perdure.cli.where import STATUSES, Condition, Where, where_option

if TYPE_CHECKING:
    from perdure.client.run_info import RunInfo


@click.command("list", short_help="List the runs in the store, newest first.")
@click.option("--workflow", metavar="NAME", type=WorkflowType(), help="Only runs of this workflow.")
@click.option("--status", "statuses", multiple=True, type=click.Choice(STATUSES),
              help="Only runs that stand so; may be given again.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True,
              help="At most so many.")  # fmt: skip
@where_option()
@store_option
@json_option
def list_runs(
    workflow: str | None,
    statuses: tuple[str, ...],
    limit: int,
    where: tuple[Condition, ...],
    store: str,
    as_json: bool,
) -> None:
    """List the runs in the store, newest first."""
    import asyncio

    conditions = [*where, *(Condition("status", status) for status in statuses)]
    if workflow is not None:
        conditions.append(Condition("workflow", workflow))
    found = asyncio.run(_runs(existing(store), Where(conditions), limit + 1))
    shown, more = found[:limit], len(found) > limit
    if as_json:
        print_json({"runs": [run_json(info) for info in shown], "more": more})
        return
    if not shown:
        say("no runs" if not conditions else "no such runs", err=True)
        return
    table(("RUN", "STATUS", "VERSION", "STARTED", "TOOK"), [_row(info) for info in shown])
    if more:
        say(f"(the newest {limit}; --limit shows more)", err=True)


def _row(info: RunInfo) -> tuple[str, ...]:
    end = info.finished or datetime.now(UTC)
    status = "stalled" if info.stalled else info.status
    name = f"{info.workflow}/{info.id}"
    return (
        name,
        status,
        info.version,
        moment(info.created),
        took((end - info.created).total_seconds()),
    )


async def _runs(store: str, where: Where, limit: int) -> list[RunInfo]:
    from perdure.client.client import Client
    from perdure.client.urls import store_of

    found: list[RunInfo] = []
    async with Client(store_of(store, read_only=True)) as client:
        async for info in where.find(client):
            found.append(info)
            if len(found) == limit:
                break
    return found
