"""`perdure import`: runs that `perdure export` wrote, into this store."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

import click

from perdure.cli.exits import usage
from perdure.cli.options import FileType, RunName, json_option, store_option
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.stores import command_of, shared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perdure.client.moving import Imported

#: Runs that are named; of more it is said how many.
NAMED: Final = 5


@click.command("import", short_help="Let exported runs into this store.")
@click.argument("file", metavar="FILE", type=FileType())
@click.option("--skip-existing", is_flag=True, help="Leave out runs that are there already.")
@click.option("--dry-run", is_flag=True, help="Only check the file, and what is there already.")
@store_option
@json_option
def import_runs(file: str, skip_existing: bool, dry_run: bool, store: str, as_json: bool) -> None:
    """Let the runs in FILE (- for stdin) into this store, each whole or not at all.

    The file is checked before anything is written. A run that had not ended is paused: when
    nobody works on it any more where it came from, `perdure unpause` lets it go on here.
    """
    import asyncio

    shared(store)
    with _opened(file) as source:
        told = asyncio.run(_import(store, source, file, skip_existing, dry_run))
    if as_json:
        print_json({"file": file, "dry_run": dry_run, "runs": [_json(one) for one in told]})
        return
    _print(told, store, dry_run)


async def _import(
    store: str, source: BinaryIO, name: str, skip: bool, dry_run: bool
) -> list[Imported]:
    from perdure.client.client import Client
    from perdure.client.export_reader import ExportReader
    from perdure.client.moving import Imported, check, existing, import_run

    runs: list[tuple[RunName, str]] = []
    keys: set[bytes] = set()
    for saved in ExportReader(source, name):
        check(saved)
        runs.append((RunName(saved.run.definition, saved.run.id), saved.run.status))
        keys.add(saved.run.key)
    twice = [str(run) for run, count in Counter(run for run, _ in runs).items() if count > 1]
    if twice:
        raise usage(f"{name} has {', '.join(twice[:NAMED])} more than once: nothing was imported")
    if len(keys) < len(runs):
        raise usage(f"{name} has runs that share a key: nothing was imported")
    async with Client(store) as client:
        there = set(await existing(client, [run for run, _ in runs]))
        if there and not skip:
            _refuse([f"{workflow}/{id}" for workflow, id in sorted(there)])
        if dry_run:
            return [Imported(*run, _outcome(status, run in there)) for run, status in runs]
        source.seek(0)
        return [await import_run(client, saved) for saved in ExportReader(source, name)]


def _outcome(status: str, there: bool) -> Literal["imported", "paused", "exists"]:
    if there:
        return "exists"
    return "paused" if status == "running" else "imported"


def _refuse(there: list[str]) -> None:
    more = f" and {len(there) - NAMED} more" if len(there) > NAMED else ""
    is_are = "is" if len(there) == 1 else "are"
    raise usage(
        f"{', '.join(there[:NAMED])}{more} {is_are} in this store already: nothing was imported; "
        "--skip-existing leaves such runs as they are"
    )


def _json(one: Imported) -> dict[str, str]:
    return {"workflow": one.workflow, "id": one.id, "outcome": one.outcome}


def _print(told: list[Imported], store: str, dry_run: bool) -> None:
    new = [one for one in told if one.outcome != "exists"]
    said = "1 run" if len(new) == 1 else f"{len(new)} runs"
    say(f"{said} {'can be' if dry_run else ''} imported".replace("  ", " "), err=True)
    if left := len(told) - len(new):
        say(f"{left} there already, and left as they are", err=True)
    paused = [f"{one.workflow}/{one.id}" for one in told if one.outcome == "paused"]
    for name in paused[:NAMED]:
        go_on = command_of("unpause", name, store=store)
        say(f"{name} had not ended and is paused; to go on here: {go_on}", err=True)
    if len(paused) > NAMED:
        say(f"… and {len(paused) - NAMED} more are paused", err=True)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    """The file, to be read more than once."""
    import shutil
    import tempfile

    if file == "-":
        with tempfile.TemporaryFile() as kept:
            shutil.copyfileobj(sys.stdin.buffer, kept)
            kept.seek(0)
            yield kept
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115  closed below
    except OSError as error:
        raise usage(f"{file} cannot be read: {error.strerror}") from None
    with source:
        yield source
