"""`perdure start`: write a run into the store; whoever works on that workflow goes on with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.exits import NOT_FOUND, Trouble, usage
from perdure.cli.inputs import read_config, read_value
from perdure.cli.options import FileOrWorkflowType, json_option, store_option
from perdure.cli.output import failure_json, print_json
from perdure.cli.say import say
from perdure.cli.stores import command_of, shared

if TYPE_CHECKING:
    from perdure.client.client import Client
    from perdure.client.run import Run
    from perdure.client.run_info import RunInfo
    from perdure.model.definition import Definition


@click.command(short_help="Start a run without working on it.")
@click.argument("workflow", metavar="FILE|APP|NAME", type=FileOrWorkflowType())
@click.option("--input", "-i", "input_", metavar="JSON", help="JSON text, @file or - (stdin).")
@click.option("--id", "run_id", help="The run's id; if there is one it is left as it is.")
@click.option("--app", "apps", multiple=True, metavar="APP",
              help="Of a NAME: the Python code that has it.")  # fmt: skip
@click.option("--version", "version", metavar="LABEL|HASH",
              help="Of a NAME: this version, not the current one.")  # fmt: skip
@click.option("--start-node", metavar="NODE", help="Begin at this node.")
@click.option("--config", metavar="JSON", help="What templates read as config.")
@store_option
@json_option
def start(
    workflow: str,
    input_: str | None,
    run_id: str | None,
    apps: tuple[str, ...],
    version: str | None,
    start_node: str | None,
    config: str | None,
    store: str,
    as_json: bool,
) -> None:
    """Start a run of the workflow in FILE, or of a NAME the store knows, without working on it.

    FILE is a document, or Python code: file.py, file.py:name, module:attr. It is durable when
    this returns. A worker takes it: `perdure worker FILE`, or `perdure run FILE --id ID`.
    """
    import asyncio

    shared(store)
    definition = _definition(workflow, apps)
    if version is not None and not isinstance(definition, str):
        raise usage("--version goes with the NAME of a workflow: a FILE is a version itself")
    options = {"id": run_id, "start_node": start_node, "config": read_config(config)}
    value = read_value(input_, "--input")
    told, why, alive, code = asyncio.run(_start(store, definition, version, value, options))
    if as_json:
        print_json(told)
        return
    say(f"{told['workflow']}/{told['id']}")
    said = "started" if told["created"] else "is there already, and left as it is"
    say(f"{said} ({told['status']}, version {told['version']})", err=True)
    if why:
        say(why, err=True)
    elif told["created"] and told["status"] == "running":
        say(_next(workflow, told, alive, store, code=code), err=True)


def _next(workflow: str, told: Mapping[str, Any], alive: int, store: str, *, code: bool) -> str:
    """Who works on it now."""
    name = f"{told['workflow']}/{told['id']}"
    if alive:
        workers = "1 worker is alive" if alive == 1 else f"{alive} workers are alive"
        watch = command_of("watch", name, store=store)
        return f"{workers}: one that serves {told['workflow']} takes it; to follow it: {watch}"
    from perdure.cli.target import is_code

    # Code holds its steps; a document needs them beside it.
    file = "FILE.py" if code else "FILE"
    if is_code(workflow) or Path(workflow).exists():
        file = workflow
    serve = command_of("worker", file, *(() if code else ("APP",)), store=store)
    beside = () if code else ("--app", "APP")
    run = command_of("run", file, *beside, "--id", str(told["id"]), store=store)
    return f"no worker is alive to take it: {serve} is one, and so is {run}"


def _definition(workflow: str, apps: tuple[str, ...]) -> Definition[Any, Any] | str:
    from perdure.cli.app import find_apps
    from perdure.cli.target import document, find_named, find_target, is_code, is_document
    from perdure.model.errors import InvalidName
    from perdure.model.names import check_name

    if is_document(workflow):
        return document(workflow)
    if is_code(workflow):
        return find_target(workflow, apps).definition
    named = find_named(workflow, find_apps(apps))
    if named is not None:
        return named.definition
    try:
        return check_name(workflow)
    except InvalidName:
        return document(workflow)  # then it was meant as a file: that error is the useful one


async def _start(
    store: str,
    definition: Definition[Any, Any] | str,
    version: str | None,
    input: Any,
    options: dict[str, Any],
) -> tuple[dict[str, Any], str, int, bool]:
    """What came of it; of a run that failed, why; how many workers are alive; whether it is one
    of code."""
    from perdure.client.client import Client
    from perdure.client.definitions import version_of
    from perdure.drivers.native import rebuild
    from perdure.model.errors import AlreadyStarted, NotFound

    async with Client(store) as client:
        created = True
        chosen: Any = definition
        try:
            if version is not None:
                chosen = rebuild(await version_of(client._store, str(definition), version))
            run = await client.start(chosen, input, **options)
        except AlreadyStarted as error:
            run, created = error.run, False
        except NotFound as error:
            if await _is_code(client, str(definition)):
                raise usage(
                    f"{definition} is a workflow in Python: say where its code is, with --app "
                    "FILE.py or [tool.perdure] app in pyproject.toml, or give FILE.py"
                ) from None
            if version is not None:
                hint = "perdure definitions shows what is there"
                raise Trouble(f"{error}; {hint}", NOT_FOUND, "not-found") from None
            raise Trouble(
                f"there is no file {definition}, and no workflow {definition} in the store: give "
                "the document's FILE, or the NAME of one that was published or started before",
                NOT_FOUND,
                "not-found",
            ) from None
        info = await run.describe()
        told = {
            "workflow": run.workflow,
            "id": run.id,
            "version": info.version,
            "status": info.status,
            "created": created,
            "failure": None if info.failure is None else failure_json(info.failure),
        }
        alive = sum(seen.alive for seen in await client._store.workers())
        # A saga has a source, and its functions are code all the same.
        code = run._definition is not None and run._definition.kind != "graph"
        return told, await _why(run, info), alive, code


async def _is_code(client: Client, name: str) -> bool:
    from perdure.model.errors import NotFound

    try:
        return not (await client._store.latest_definition(name)).source
    except NotFound:
        return False


async def _why(run: Run[Any], info: RunInfo) -> str:
    """Why it has ended without an output; empty of any other run."""
    if info.failure is None:
        return ""
    from perdure.cli.failed import failed_run
    from perdure.cli.nodes import NodeBook

    book = NodeBook()
    async for record in run.history():
        book.take(record)
    return failed_run(f"{run.workflow}/{run.id}", info.status, info.failure, book)
