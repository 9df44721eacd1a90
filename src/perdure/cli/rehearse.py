"""`perdure rehearse`: run a document against mocks, in virtual time; show or assert the route."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.app import check_steps, find_apps, load_apps
from perdure.cli.exits import RUN_FAILED, TIMED_OUT, usage
from perdure.cli.inputs import read_config, read_value
from perdure.cli.options import FileType, json_option
from perdure.cli.output import print_json, shortened, table
from perdure.cli.say import say

if TYPE_CHECKING:
    from perdure.testing import Coverage, Rehearsal


@click.command(short_help="Run a document against mocks.")
@click.argument("file", metavar="FILE", type=FileType())
@click.option("--mock", "-m", "mocks", multiple=True, metavar="MOCKS", type=FileType(),
              help="What steps answer, a JSON or YAML file; again for one more.")  # fmt: skip
@click.option("--input", "-i", "input_", metavar="JSON", help="Instead of the mocks' own input.")
@click.option("--config", metavar="JSON", help="Instead of the mocks' own config.")
@click.option("--default", metavar="JSON", help="The answer of every step without a mock.")
@click.option("--app", "apps", multiple=True, metavar="APP", type=FileType(),
              help="The real steps: inputs must fit, retries and timeouts count. And what "
              "CHILD nodes ask for.")  # fmt: skip
@click.option("--coverage", "covered", is_flag=True, help="Show which edges were never taken.")
@click.option("--draw", "drawing", metavar="SVG", help="Draw how the last rehearsal went.")
@json_option
def rehearse(
    file: str,
    mocks: tuple[str, ...],
    input_: str | None,
    config: str | None,
    default: str | None,
    apps: tuple[str, ...],
    covered: bool,
    drawing: str | None,
    as_json: bool,
) -> None:
    """Run the workflow in FILE against mocks: by the real engine, in virtual time, storing nothing.

    Steps and requests are not carried out, they answer what MOCKS says; a wait of three days takes
    no time. What MOCKS expects (route, status, output, …) is compared: exit code 1 with the
    differences. Without expectations 1 means that the run failed, 4 that it would wait for ever.
    """
    from perdure.cli.target import document
    from perdure.testing import coverage
    from perdure.testing import rehearse as play

    graph = document(file)
    found = find_apps(apps)
    registry = load_apps(found) if found else None
    if registry is not None:
        check_steps(graph, registry, found, file)
    given: dict[str, Any] = {}
    if registry is not None:
        given = {"steps": registry.steps.values(), "beside": registry.definitions.values()}
    for name, text, read in (
        ("input", input_, lambda: read_value(input_, "--input")),
        ("config", config, lambda: read_config(config)),
        ("default", default, lambda: read_value(default, "--default")),
    ):
        if text is not None:
            given[name] = read()
    played = {name: play(graph, name or None, **given) for name in mocks or ("",)}
    differing = {name: rehearsal.differences() for name, rehearsal in played.items()}
    if drawing is not None:
        _draw(drawing, list(played.values())[-1])
    cover = coverage(played.values()) if covered else None
    if as_json:
        print_json(_json(played, differing, cover))
    else:
        _print(played, differing, cover)
    code = max(map(_code, played.values(), differing.values()))
    click.get_current_context().exit(code)


def _code(rehearsal: Rehearsal, differing: list[str]) -> int:
    if rehearsal.expected:
        return RUN_FAILED if differing else 0
    return {"completed": 0, "waiting": TIMED_OUT}.get(rehearsal.status, RUN_FAILED)


def _draw(file: str, rehearsal: Rehearsal) -> None:
    try:
        Path(file).write_text(rehearsal.svg(), encoding="utf-8")
    except OSError as error:
        raise usage(f"{file} cannot be written: {error.strerror}") from None


def _print(
    played: dict[str, Rehearsal], differing: dict[str, list[str]], cover: Coverage | None
) -> None:
    from perdure.testing.story import clock, ending, what

    for name, rehearsal in played.items():
        if len(played) > 1:
            say(f"{name}:")
        rows = [
            (f"+{clock(run.began)}", run.node, run.status, str(run.attempt or "-"), what(run))
            for run in rehearsal.nodes.values()
        ]
        table(("AT", "NODE", "STATUS", "ATTEMPT", "WHAT"), rows)
        say(f"{ending(rehearsal)} after {clock(rehearsal.seconds)}")
        if rehearsal.output is not None:
            say(f"output: {shortened(rehearsal.output, 400)}")
        for note in rehearsal.notes:
            say(f"note: {note}")
        if differing[name]:
            say(f"{name}: not as expected:", err=True)
            for line in differing[name]:
                say(f"  {line}", err=True)
        elif rehearsal.expected:
            say("as expected")
        if len(played) > 1:
            say()
    if cover is not None:
        say(str(cover))


def _json(
    played: dict[str, Rehearsal], differing: dict[str, list[str]], cover: Coverage | None
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "rehearsals": [
            {
                "mocks": name or None,
                "status": one.status,
                "reason": one.reason or None,
                "output": one.output,
                "failure": one.failure,
                "seconds": one.seconds,
                "route": one.route,
                "skipped": one.skipped,
                "edges": one.edges,
                "nodes": [
                    {
                        "node": run.node,
                        "status": run.status,
                        "attempt": run.attempt,
                        "began": run.began,
                        "ended": run.ended,
                        "output": run.output,
                        "failure": run.failure,
                        "branches": run.branches,
                    }
                    for run in one.nodes.values()
                ],
                "notes": one.notes,
                "expected": bool(one.expected),
                "differences": differing[name],
            }
            for name, one in played.items()
        ]
    }
    if cover is not None:
        told["coverage"] = {
            "edges": cover.edges,
            "percent": round(cover.percent, 1),
            "missed": cover.missed,
            "never_ran": cover.never_ran,
        }
    return told
