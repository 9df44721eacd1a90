"""`perdure worker`: a process that owns runs and executes their steps until it is told to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from perdure.cli.app import check_steps, find_apps, load_apps
from perdure.cli.exits import OK, usage
from perdure.cli.leave import leave
from perdure.cli.options import DurationType, shared, store_option

if TYPE_CHECKING:
    from perdure.cli.progress import Screen
    from perdure.engine.live_run import LiveRun
    from perdure.kernel.actions import Transition
    from perdure.kernel.run import Run


class Duty(msgspec.Struct, frozen=True):
    """What to serve, and how. `definitions`: graphs, steps and whatever else the apps declare."""

    definitions: Sequence[Any]
    names: Sequence[str]
    store: str
    name: str
    grace: float
    hosts: tuple[str, ...]
    quiet: bool


@click.command()
@click.argument("things", metavar="APP|FILE...", nargs=-1)
@click.option("--name", default="", help="How others see this worker. Default: host and process.")
@click.option("--grace", type=DurationType(), default="30s", show_default=True,
              help="How long steps under way may take to end when this stops.")  # fmt: skip
@click.option("--allow-host", "hosts", multiple=True, metavar="HOST",
              help="HTTP nodes may call these hosts only; may be given again.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="Tell only what goes wrong.")
@store_option
def worker(
    things: tuple[str, ...],
    name: str,
    grace: float,
    hosts: tuple[str, ...],
    quiet: bool,
    store: str,
) -> None:
    """Work on the runs of documents (FILE.json) with the steps of APPs, until SIGTERM or Ctrl-C.

    APP is file.py, module or module:attr. It takes every run that is due, waits for the others,
    and takes over from workers that die.
    """
    import asyncio

    from perdure.cli.lines import Lines

    definitions, names = _served(things)
    duty = Duty(definitions, names, shared(store), name, grace, hosts, quiet)
    with Lines() as screen:
        asyncio.run(_serve(duty, screen))
    leave(OK)


def _served(things: Sequence[str]) -> tuple[list[Any], list[str]]:
    from perdure.graph.definition import Graph

    files = [thing for thing in things if thing.endswith((".json", ".yaml", ".yml"))]
    apps = find_apps([thing for thing in things if thing not in files])
    graphs = {file: Graph.read(file) for file in files}
    found = load_apps(apps)
    for file, graph in graphs.items():
        check_steps(graph, found, apps, file)
    served = [*graphs.values(), *found.definitions.values()]
    if not served:
        raise usage("there is nothing to serve: name documents, such as perdure worker order.json")
    return [*served, *found.steps.values()], [definition.name for definition in served]


async def _serve(duty: Duty, screen: Screen) -> None:
    from perdure.cli.logs import log_to
    from perdure.client.engine import Engine
    from perdure.engine.handlers.http_options import HttpOptions
    from perdure.engine.secrets import Secrets

    secrets = Secrets.from_environment()
    engine = Engine(
        duty.store,
        duty.definitions,
        secrets=secrets,
        http=HttpOptions(allow_hosts=duty.hosts or None),
        grace=duty.grace,
        name=duty.name,
    )
    told = Told(screen, duty.quiet)
    engine.observe(told)
    with log_to(screen, secrets.redact):
        async with engine:
            told.note(f"serves {', '.join(duty.names)} on {duty.store}; Ctrl-C or SIGTERM ends it")
            await engine.serve()
            told.note(f"stopping: steps under way have {duty.grace:g} s to end")
        told.note("stopped; what is not done is kept for the next worker")


class Told:
    """An engine's Observer: which runs came, and how they ended. `quiet`: only failures."""

    def __init__(self, screen: Screen, quiet: bool) -> None:
        self._screen = screen
        self._quiet = quiet

    def note(self, text: str) -> None:
        """Something about the worker itself."""
        if not self._quiet:
            self._screen.note(text)

    def entered(self, live: LiveRun, run: Run) -> None:
        """A run came into memory."""
        begins = live.epoch == 0 or not run.nodes
        self.note(f"{_name(live)} {'begins' if begins else 'goes on'}")

    def recorded(self, live: LiveRun, transition: Transition) -> None:
        """A transition became durable: its run may have ended with it."""
        from perdure.cli.nodes import reason
        from perdure.kernel.actions import CreateTask, FinishRun

        for action in transition.actions:
            if isinstance(action, FinishRun):
                if action.failure is None:
                    self.note(f"{_name(live)} {action.status}")
                    continue
                why = reason(action.failure.kind, action.failure.message)
                self._screen.note(f"{_name(live)} {action.status}: {why}")
            elif isinstance(action, CreateTask) and action.status == "waiting":
                self.note(f"{_name(live)} waits at {action.node}{_for(action)}")


def _for(action: Any) -> str:
    from perdure.cli.output import moment_near
    from perdure.client.run import time_of

    signal = f" for signal {action.awaited_signal}" if action.awaited_signal else ""
    until = "" if action.wake_at is None else f" until {moment_near(time_of(action.wake_at))}"
    return signal + until


def _name(live: LiveRun) -> str:
    return f"{live.definition.name}/{live.run_id}"
