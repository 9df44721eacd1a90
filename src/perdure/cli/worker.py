"""`perdure worker`: a process that owns runs and executes their steps until it is told to stop."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from perdure.cli.app import check_steps, find_apps, load_apps
from perdure.cli.exits import OK, usage
from perdure.cli.leave import leave, step_threads
from perdure.cli.options import DurationType, FileType, json_option, store_option
from perdure.cli.output import line_to
from perdure.cli.stores import shared


@click.command(short_help="Work on runs until told to stop.")
@click.argument("things", metavar="APP|FILE...", nargs=-1, type=FileType())
@click.option("--name", default="", help="How others see this worker. Default: host and process.")
@click.option("--grace", type=DurationType(), default="30s", show_default=True,
              help="How long steps under way may take to end when this stops.")  # fmt: skip
@click.option("--allow-host", "hosts", multiple=True, metavar="HOST",
              help="HTTP nodes may call these hosts only; may be given again.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="Tell only what goes wrong.")
@store_option
@json_option
def worker(
    things: tuple[str, ...],
    name: str,
    grace: float,
    hosts: tuple[str, ...],
    quiet: bool,
    store: str,
    as_json: bool,
) -> None:
    """Work on the runs of documents (FILE.json) and of the workflows that APPs hold, with the steps
    of APPs, until SIGTERM or Ctrl-C.

    APP is file.py, file.py:name, module or module:attr. It takes every run that is due, waits
    for the others, and takes over from workers that die. Exits with 5 if the store did not take all
    that was done. With --json a line on stdout for each thing that happens.
    """
    import asyncio

    from perdure.cli.lines import Lines
    from perdure.cli.serving import Duty, serve

    definitions, names = _served(things)
    # The stdout of before: what steps print goes elsewhere.
    events = line_to(sys.stdout) if as_json else None
    duty = Duty(definitions, names, shared(store), name, grace, hosts, quiet, events)
    others = step_threads()
    with Lines() as screen:
        asyncio.run(serve(duty, screen))
    leave(OK, others)


def _served(things: Sequence[str]) -> tuple[list[Any], list[str]]:
    from perdure.cli.environment import check_http
    from perdure.cli.target import DOCUMENTS
    from perdure.graph.definition import Graph

    files = [thing for thing in things if thing.endswith(DOCUMENTS)]
    apps = find_apps([thing for thing in things if thing not in files])
    graphs = {file: Graph.read(file) for file in files}
    found = load_apps(apps)
    for file, graph in graphs.items():
        check_steps(graph, found, apps, file, how=f"perdure worker {' '.join(things)} ")
        check_http(graph, file)
    served = [*graphs.values(), *found.definitions.values()]
    if not served:
        raise usage(
            "there is nothing to serve: name documents, and where their steps are, or apps that "
            "hold workflows, such as perdure worker order.yaml steps.py"
        )
    return [*served, *found.steps.values()], [definition.name for definition in served]
