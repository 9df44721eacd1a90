"""`perdure retry`: a run that has ended goes on, from a node or from all that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.app import find_apps, load_apps
from perdure.cli.bulk import Bulk, bulk_options, chosen, many, one
from perdure.cli.exits import usage
from perdure.cli.inputs import read_config, read_value
from perdure.cli.options import RunName, RunNameType, json_option, store_option
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.stores import command_of, existing

if TYPE_CHECKING:
    from perdure.client.run import Run
    from perdure.flow.registry import Registry
    from perdure.model.definition import Definition


@click.command(short_help="Let an ended run, or many, go on.")
@click.argument("name", type=RunNameType(), metavar="[WORKFLOW/ID]", required=False)
@click.option("--from", "node", metavar="NODE",
              help="Do this node, and all that comes after it, again.")  # fmt: skip
@click.option("--failed", is_flag=True,
              help="Do every node that failed again (the default).")  # fmt: skip
@click.option("--input", "-i", "input_", metavar="JSON",
              help="Go on with another input: JSON text, @file or - (stdin).")  # fmt: skip
@click.option("--config", metavar="JSON", help="Go on with another config.")
@click.option("--app", "apps", multiple=True, metavar="APP",
              help="Where the code of a workflow in Python is.")  # fmt: skip
@bulk_options
@store_option
@json_option
def retry(
    name: RunName | None,
    node: str | None,
    failed: bool,
    input_: str | None,
    config: str | None,
    apps: tuple[str, ...],
    bulk: Bulk,
    store: str,
    as_json: bool,
) -> None:
    """Let the ended run WORKFLOW/ID go on. What had completed is kept and not done again.

    A worker takes it, `perdure run FILE --id ID` is one. A run that was paused stays so: `perdure
    unpause` it. A workflow in Python runs again from what is recorded, so its code has to be here:
    --app, or [tool.perdure] app in pyproject.toml. With --where all those runs go on;
    which are meant are failed and canceled ones, unless a status is said.
    """
    if node is not None and failed:
        raise usage("give --from NODE or --failed, not both")
    options: dict[str, Any] = {"failed": True} if node is None else {"from_node": node}
    if input_ is not None:
        options["input"] = read_value(input_, "--input")
    if config is not None:
        options["config"] = read_config(config)

    paused = False
    code = Code(apps)

    async def again(run: Run[Any]) -> None:
        nonlocal paused
        await code.retry(run, options)
        paused = await _is_paused(run)

    if chosen(name, bulk) is None:
        many(existing(store), bulk, again, "retry", ("failed", "canceled"), as_json)
        return
    assert name is not None
    info = one(existing(store), name, again)
    paused = paused and info.status == "running"  # what has ended already waits for nothing
    if as_json:
        print_json({"workflow": name.workflow, "id": name.id, "status": info.status,
                    "version": info.version, "paused": paused})  # fmt: skip
        return
    start = "what failed" if node is None else f"node {node}"
    say(f"{name} goes on from {start}, version {info.version}; a worker takes it", err=True)
    if paused:
        advice = command_of("unpause", str(name), store=store)
        say(f"it was paused, and stays so: nothing starts until you do: {advice}", err=True)


class Code:
    """The code of the apps, imported when a run of a workflow in Python needs it."""

    def __init__(self, apps: Sequence[str]) -> None:
        self._apps = apps
        self._known: Registry | None = None

    async def retry(self, run: Run[Any], options: Mapping[str, Any]) -> None:
        """Retry a run of any kind. Raises Trouble where its code is not here."""
        row = await run._row()
        stored = await run._reach.store.definition(row.hash)
        if not stored.source:
            from perdure.client.run import Run

            run = Run(run._reach, self._definition(run.workflow), run.id)
        await run.retry(**options)

    def _definition(self, workflow: str) -> Definition[Any, Any]:
        found = find_apps(self._apps)
        if self._known is None:
            self._known = load_apps(found)
        definition = self._known.definition(workflow)
        if definition is None:
            missing = f", which {', '.join(found)} does not have" if found else ""
            raise usage(
                f"{workflow} is a workflow in Python{missing}: say where its code is, with --app "
                "FILE.py or [tool.perdure] app in pyproject.toml"
            )
        return definition


async def _is_paused(run: Run[Any]) -> bool:
    from perdure.cli.nodes import NodeBook

    book = NodeBook()
    async for record in run.history():
        book.take(record)
    return book.paused is not None
