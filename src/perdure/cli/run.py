"""`perdure run`: start or join a run, work on it here, and wait for its end."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.exits import (
    INTERRUPTED,
    RUN_FAILED,
    STORE,
    TERMINATED,
    TIMED_OUT,
    usage,
)
from perdure.cli.inputs import read_config, read_value
from perdure.cli.leave import leave, step_threads
from perdure.cli.options import DurationType, FileType, json_option, store_option
from perdure.cli.outcome import outcome_json
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.stores import command_of, outlives

if TYPE_CHECKING:
    from perdure.cli.nodes import NodeBook
    from perdure.cli.work import Ending, Job
    from perdure.model.definition import Definition


@click.command(short_help="Start or join a run, work on it here, and wait.")
@click.argument("file", metavar="FILE|APP", type=FileType())
@click.option("--input", "-i", "input_", metavar="JSON", help="JSON text, @file or - (stdin).")
@click.option("--id", "run_id", help="The run's id; joins the run if there is one. Default: new.")
@click.option("--app", "apps", multiple=True, metavar="APP", type=FileType(),
              help="Where the steps are: file.py, module or module:attr.")  # fmt: skip
@click.option("--timeout", type=DurationType(), help="Wait no longer than this; the run stays.")
@click.option("--grace", type=DurationType(), default="5s", show_default=True,
              help="How long steps under way may take to end when this stops.")  # fmt: skip
@click.option("--start-node", metavar="NODE", help="Of a document: begin at this node.")
@click.option("--config", metavar="JSON", help="Of a document: what templates read as config.")
@click.option("--allow-host", "hosts", multiple=True, metavar="HOST",
              help="HTTP nodes may call these hosts only; may be given again.")  # fmt: skip
@store_option
@json_option
def run(
    file: str,
    input_: str | None,
    run_id: str | None,
    apps: tuple[str, ...],
    timeout: float | None,
    grace: float,
    start_node: str | None,
    config: str | None,
    hosts: tuple[str, ...],
    store: str,
    as_json: bool,
) -> None:
    """Run the workflow in FILE: start it or join it, work on it here, and wait.

    FILE is a document (.json, .yaml), or Python code: file.py or a module that holds one
    workflow, file.py:name or module:attr. Kill it at any moment and give the same command with
    the same --id again: it goes on after the last step that was recorded. The output is printed
    as JSON, progress on stderr.
    """
    from perdure.cli.target import find_target
    from perdure.cli.work import Job

    definition, beside = find_target(file, apps)
    _check(definition, file, start_node, config)
    if run_id is None:
        _check_calls(definition, beside, file)  # before an engine opens; one there may go on
    job = Job(
        definition,
        beside,
        _new_id() if run_id is None else run_id,
        store,
        read_value(input_, "--input"),
        input_ is not None,
        read_config(config),
        start_node,
        timeout,
        hosts,
        grace,
        file,
    )
    command = _resume_command(job, apps)
    if run_id is None and outlives(store):
        job.parting = f"if this process dies, go on with: {command}"
    others = step_threads()
    book, ending = _shown(job)
    leave(_report(job, ending, book, command, as_json), others)


def _check(
    definition: Definition[Any, Any], file: str, start_node: str | None, config: str | None
) -> None:
    """Raise Trouble for what is missing, or does not go with it."""
    from perdure.cli.environment import check_http, check_secrets
    from perdure.graph.definition import Graph

    if isinstance(definition, Graph):
        check_secrets(definition, file)
        check_http(definition, file)
    elif start_node is not None or config is not None:
        given = "--config" if start_node is None else "--start-node"
        raise usage(f"{given} is for documents: {file} is Python, and has its --input")


def _check_calls(definition: Definition[Any, Any], beside: list[Any], file: str) -> None:
    """Raise Trouble where a new run of a document could not call its steps."""
    from perdure.client.calls import unfit
    from perdure.flow.registry import Registry

    if why := unfit(definition, Registry.of(beside)):
        raise usage(f"{file}: {why}")


def _new_id() -> str:
    from perdure.engine.clock import SystemClock
    from perdure.engine.ids import Ids

    return Ids(SystemClock().now).text()


def _resume_command(job: Job, apps: tuple[str, ...]) -> str:
    """The command that goes on with this run. Input, config and start node are recorded."""
    words = ["run", job.document, "--id", job.id]
    for app in apps:
        words += ["--app", app]
    for host in job.hosts:
        words += ["--allow-host", host]
    return command_of(*words, store=job.store)


def _shown(job: Job) -> tuple[NodeBook, Ending]:
    import asyncio

    from perdure.cli.nodes import NodeBook
    from perdure.cli.progress import Progress
    from perdure.cli.screens import screen_for
    from perdure.cli.work import work
    from perdure.graph.definition import Graph

    graph = job.definition if isinstance(job.definition, Graph) else None
    book = NodeBook()
    if outlives(job.store):
        name = f"{job.name}/{job.id}"
        book = NodeBook(lambda *words: command_of("signal", name, *words, store=job.store))
    with screen_for(book, graph) as screen:
        progress = Progress(job.name, job.id, book, screen, parting=job.parting)
        return book, asyncio.run(work(job, progress))


def _report(job: Job, ending: Ending, book: NodeBook, command: str, as_json: bool) -> int:
    """Print the outcome; the exit code."""
    name = f"{job.name}/{job.id}"
    if as_json:
        print_json(outcome_json(ending.info, ending.output, ending.failure))
    elif ending.why == "ended" and ending.failure is None:
        print_json(ending.output)
    code = _told(name, job, ending, book, command)
    if ending.unrecorded is None:
        return code
    from perdure.engine.outages import unrecorded

    say(f"perdure: stopped, but {unrecorded(ending.unrecorded)}", err=True)
    return STORE


def _told(name: str, job: Job, ending: Ending, book: NodeBook, command: str) -> int:
    """Say what did not go as asked; the exit code for how the run stands."""
    if ending.why == "ended":
        if ending.failure is None:
            return 0
        say(_failed(name, ending, book, job, command), err=True)
        return RUN_FAILED
    if ending.why == "timeout":
        say(f"perdure: {name} has not ended within {job.seconds:g} s", err=True)
    if outlives(job.store):
        say(f"The run stays as it is. To go on:\n  {command}", err=True)
    if ending.why == "timeout":
        return TIMED_OUT
    return TERMINATED if ending.signal == signal.SIGTERM else INTERRUPTED


def _failed(name: str, ending: Ending, book: NodeBook, job: Job, command: str) -> str:
    from perdure.cli.failed import done_again, failed_run

    assert ending.failure is not None
    lines = failed_run(name, ending.info.status, ending.failure, book)
    if not outlives(job.store):
        return lines
    show = command_of("show", name, "--history", store=job.store)
    code = () if job.definition.source else ("--app", job.document)
    retry = command_of("retry", name, *code, store=job.store)
    return (
        f"{lines}\nWhat happened, step by step: {show}"
        f"\nWhen the cause is mended, {done_again(ending.failure)} is done again: "
        f"{retry} && {command}"
    )
