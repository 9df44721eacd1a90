"""Doing one thing to one run, or to all runs that `--where` means.

Of many it is first said how many and which, and asked. A run that cannot be told does not
hinder the others; it is named at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

import click

from perdure.cli.exits import RUN_FAILED, Trouble, usage
from perdure.cli.options import F, RunName
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.where import Condition, Where, where_option

if TYPE_CHECKING:
    from perdure.client.client import Client
    from perdure.client.run import Run
    from perdure.client.run_info import RunInfo

Act: TypeAlias = "Callable[[Run[Any]], Awaitable[object]]"

#: Runs that are named before it is asked.
NAMED: Final = 10
#: Runs that are told something at the same time.
AT_ONCE: Final = 32


class Bulk(NamedTuple):
    """What `--where`, `--yes` and `--dry-run` said."""

    where: tuple[Condition, ...]
    yes: bool
    dry_run: bool


class Told(NamedTuple):
    """What became of one run. `error`: why it was not told."""

    info: RunInfo
    error: str | None = None


def bulk_options(command: F) -> F:
    """`--where`, `--yes`, `--dry-run`, gathered into one `bulk`."""

    @functools.wraps(command)
    def gathered(
        *args: Any, where: tuple[Condition, ...], yes: bool, dry_run: bool, **rest: Any
    ) -> Any:
        return command(*args, bulk=Bulk(where, yes, dry_run), **rest)

    made = where_option("All runs of which this holds, in place of WORKFLOW/ID.")(gathered)
    for name, help in (("--yes", "Do not ask."), ("--dry-run", "Only say which runs those are.")):
        made = click.option(name, is_flag=True, help=help)(made)
    return cast("F", made)


def chosen(name: RunName | None, bulk: Bulk) -> RunName | None:
    """The one run that is meant, or None for those of `--where`. Raises Trouble for both, and
    for neither."""
    if name is not None and bulk.where:
        raise usage("give WORKFLOW/ID or --where, not both")
    if name is None and not bulk.where:
        raise usage("say which run, as WORKFLOW/ID, or which ones, with --where KEY=VALUE")
    if name is not None and (bulk.yes or bulk.dry_run):
        raise usage("--yes and --dry-run go with --where")
    return name


def one(store: str, name: RunName, act: Act) -> RunInfo:
    """Do it to one run; how the run stands then."""
    import asyncio

    from perdure.client.client import Client

    async def main() -> RunInfo:
        async with Client(store) as client:
            run = client.get(*name)
            await act(run)
            return await run.describe()

    return asyncio.run(main())


def many(
    store: str, bulk: Bulk, act: Act, what: str, default: Sequence[str], as_json: bool
) -> None:
    """Do it to all that are meant, and report. `what` names it: "cancel". `default`: the statuses
    that are meant when `--where` says none."""
    import asyncio

    where = Where(bulk.where, default)
    found = asyncio.run(_found(store, where))
    _show(found, what)
    if bulk.dry_run or not found:
        if as_json:
            print_json(_json(what, [Told(info) for info in found], dry_run=bulk.dry_run))
        return
    if not bulk.yes:
        _ask(what, len(found), as_json)
    told = asyncio.run(_do(store, found, act))
    failed = [one for one in told if one.error is not None]
    if as_json:
        print_json(_json(what, told, dry_run=False))
    for one_ in failed:
        name = f"{one_.info.workflow}/{one_.info.id}"
        text = str(one_.error)
        say(text if text.startswith(name) else f"{name}: {text}", err=True)
    rest = f", {len(failed)} failed" if failed else ""
    say(f"{what}: {len(told) - len(failed)} of {_runs(len(told))} told{rest}", err=True)
    if failed:
        click.get_current_context().exit(RUN_FAILED)


async def _found(store: str, where: Where) -> list[RunInfo]:
    from perdure.client.client import Client
    from perdure.client.urls import store_of

    async with Client(store_of(store, read_only=True)) as client:
        return [info async for info in where.find(client)]


def _show(found: Sequence[RunInfo], what: str) -> None:
    if not found:
        say("no such runs", err=True)
        return
    say(f"{what}: {_runs(len(found))}", err=True)
    for info in found[:NAMED]:
        status = "stalled" if info.stalled else info.status
        say(f"  {info.workflow}/{info.id}  {status}", err=True)
    if len(found) > NAMED:
        say(f"  … and {len(found) - NAMED} more", err=True)


def _ask(what: str, count: int, as_json: bool) -> None:
    if as_json:
        raise usage("with --json nobody is asked: give --yes, or --dry-run to see the runs")
    try:
        sure = click.confirm(f"{what} {_runs(count)}?", err=True)
    except click.Abort:
        raise usage("nobody answered, nothing was done: give --yes") from None
    if not sure:
        raise Trouble("nothing was done", RUN_FAILED, "declined")


async def _do(store: str, found: Sequence[RunInfo], act: Act) -> list[Told]:
    import asyncio

    from perdure.client.client import Client

    room = asyncio.Semaphore(AT_ONCE)
    async with Client(store) as client:

        async def tell(info: RunInfo) -> Told:
            async with room:
                return await _tell(client, info, act)

        return list(await asyncio.gather(*map(tell, found)))


async def _tell(client: Client, info: RunInfo, act: Act) -> Told:
    from perdure.model.errors import PerdureError

    run = client.get(info.workflow, info.id)
    try:
        await act(run)
        return Told(await run.describe())
    except PerdureError as error:
        return Told(info, str(error))


def _json(what: str, told: Sequence[Told], *, dry_run: bool) -> dict[str, Any]:
    done = [one for one in told if one.error is None]
    return {
        "action": what,
        "matched": len(told),
        "dry_run": dry_run,
        "done": 0 if dry_run else len(done),
        "failed": len(told) - len(done),
        "runs": [
            {
                "workflow": one.info.workflow,
                "id": one.info.id,
                "status": one.info.status,
                "error": one.error,
            }
            for one in told
        ],
    }


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
