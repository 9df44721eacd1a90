"""`perdure steps`: what a TASK node can call, and what its input must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perdure.cli.app import find_apps, load_apps
from perdure.cli.exits import usage
from perdure.cli.options import FileType, json_option
from perdure.cli.output import print_json, took
from perdure.cli.say import say

if TYPE_CHECKING:
    from perdure.flow.step import Step


@click.command(short_help="List the steps that documents can call.")
@click.argument("names", metavar="[STEP...]", nargs=-1)
@click.option("--app", "apps", multiple=True, metavar="APP", type=FileType(),
              help="Where the steps are: file.py, module or module:attr.")  # fmt: skip
@json_option
def steps(names: tuple[str, ...], apps: tuple[str, ...], as_json: bool) -> None:
    """List the steps that a TASK node can call, with parameters, retries and timeouts.

    With --json also the JSON Schema of each one's input and output.
    """
    found = find_apps(apps)
    if not found:
        raise usage(
            "say where the steps are, with --app steps.py or "
            '[tool.perdure] app = "steps.py" in pyproject.toml'
        )
    known = load_apps(found).steps
    unknown = [name for name in names if name not in known]
    if unknown:
        there = ", ".join(known) or "none"
        raise usage(f"{', '.join(found)} has no step {', '.join(unknown)} (it has: {there})")
    chosen = [step for name, step in sorted(known.items()) if not names or name in names]
    if as_json:
        print_json({"steps": [_json(step) for step in chosen]})
        return
    if not chosen:
        say(f"no steps in {', '.join(found)}: a step is a function under @step", err=True)
    for step in chosen:
        _print(step)


def _print(step: Step[..., Any]) -> None:
    from perdure.cli.step_schema import summary
    from perdure.flow.binding import function_signature, written

    say(f"{step.name}{_shown(written(function_signature(step.fn)))}")
    if said := summary(step):
        say(f"    {said}")
    say(f"    {_policy(step)}")


def _shown(signature: str) -> str:
    return signature if signature.startswith("(") else "()"


def _policy(step: Step[..., Any]) -> str:
    policy = step.retry.policy
    parts = ["1 attempt" if policy.attempts == 1 else f"{policy.attempts} attempts"]
    if policy.attempts > 1:
        most = f", at most {took(policy.max_delay / 1e6)}" if policy.max_delay else ""
        parts.append(f"after {took(policy.initial / 1e6)} × {policy.factor:g}{most}")
    timeout = step.timeout_us
    parts.append(f"{took(timeout / 1e6)} each" if timeout else "no time limit")
    if step.queue != "default":
        parts.append(f"queue {step.queue}")
    return ", ".join(parts)


def _json(step: Step[..., Any]) -> dict[str, Any]:
    from perdure.cli.step_schema import input_schema, output_schema, parameters_json, summary

    policy = step.retry.policy
    return {
        "name": step.name,
        "description": summary(step) or None,
        "parameters": parameters_json(step),
        "input": input_schema(step),
        "output": output_schema(step),
        "retry": {
            "attempts": policy.attempts,
            "initial": policy.initial / 1e6,
            "factor": policy.factor,
            "max_delay": policy.max_delay / 1e6 or None,
            "jitter": policy.jitter,
            "max_elapsed": policy.max_elapsed / 1e6 or None,
        },
        "timeout": step.timeout_us / 1e6 or None,
        "queue": step.queue,
        "priority": step.priority,
        "async": step.is_async,
    }
