"""How a run came out, told alike by all commands that wait for its end: what goes to stdout, what
to stderr, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perdure.cli.exits import RUN_FAILED, TIMED_OUT
from perdure.cli.output import failure_json, print_json, run_json
from perdure.cli.say import say

if TYPE_CHECKING:
    from perdure.cli.nodes import NodeBook
    from perdure.cli.options import RunName
    from perdure.client.run_info import RunInfo
    from perdure.model.errors import Failure


def outcome_json(info: RunInfo, output: Any, failure: Failure | None) -> dict[str, Any]:
    """A run and what came of it, for programs."""
    document = {**run_json(info), "output": output}
    if failure is not None:
        document["failure"] = failure_json(failure)
    return document


def tell_outcome(
    name: RunName, info: RunInfo, output: Any, failure: Failure | None, book: NodeBook,
    *, as_json: bool, unended: str,
) -> None:  # fmt: skip
    """Print it, and exit unless the run completed. `unended`: what is said of one that goes on,
    after its name."""
    if as_json:
        print_json(outcome_json(info, output, failure))
    elif info.status == "completed":
        print_json(output)
    if info.status == "running":
        say(f"perdure: {name} {unended}", err=True)
        click.get_current_context().exit(TIMED_OUT)
    if failure is not None:
        from perdure.cli.failed import failed_run

        say(failed_run(str(name), info.status, failure, book), err=True)
        click.get_current_context().exit(RUN_FAILED)
