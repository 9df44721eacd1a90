"""`perdure export`: runs, whole, as a file that another store can import."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from perdure.cli.exits import usage
from perdure.cli.options import RunName, RunNameType, json_option, store_option
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.stores import existing
from perdure.cli.where import ENDED, STATUSES, Condition, Where, where_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perdure.client.client import Client


@click.command(short_help="Write runs, whole, into a file.")
@click.argument("names", metavar="[WORKFLOW/ID...]", nargs=-1, type=RunNameType())
@where_option("All runs of which this holds, in place of WORKFLOW/ID.")
@click.option("--running", is_flag=True, help="Also runs that have not ended, as they are now.")
@click.option("--output", "-o", metavar="FILE", help="Write to this file. Default: stdout.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@store_option
@json_option
def export(
    names: tuple[RunName, ...],
    where: tuple[Condition, ...],
    running: bool,
    output: str | None,
    force: bool,
    store: str,
    as_json: bool,
) -> None:
    """Write runs with all that was recorded of them as JSON Lines, for `perdure import`.

    A run that has not ended is refused unless --running: it is exported as it is now and goes on
    here; its import is paused.
    """
    import asyncio

    if bool(names) == bool(where):
        raise usage("say which runs, as WORKFLOW/ID, or with --where KEY=VALUE")
    url = existing(store)
    if output is None:
        asyncio.run(_export(url, names, where, running, sys.stdout.buffer))
        return
    with _new_file(Path(output), force) as file:
        count = asyncio.run(_export(url, names, where, running, file))
    size = Path(output).stat().st_size
    if as_json:
        print_json({"file": output, "runs": count, "bytes": size})
    else:
        said = "1 run" if count == 1 else f"{count} runs"
        say(f"{said} written to {output} ({size / 1024:.1f} KiB)", err=True)


async def _export(
    store: str,
    names: tuple[RunName, ...],
    where: tuple[Condition, ...],
    running: bool,
    file: BinaryIO,
) -> int:
    from datetime import UTC, datetime
    from importlib.metadata import version

    from perdure.cli.output import instant
    from perdure.client.client import Client
    from perdure.client.export_writer import ExportWriter
    from perdure.client.moving import saved_runs
    from perdure.client.urls import store_of

    async with Client(store_of(store, read_only=True)) as client:
        chosen = await _chosen(client, names, where, running)
        writer, count = ExportWriter(), 0
        file.write(writer.head(f"perdure {version('perdure')}", instant(datetime.now(UTC))))
        async for saved in saved_runs(client, chosen, running=running):
            file.writelines(writer.run(saved))
            count += 1
        file.write(writer.done())
        file.flush()
        return count


async def _chosen(
    client: Client, names: tuple[RunName, ...], where: tuple[Condition, ...], running: bool
) -> list[tuple[str, str]]:
    """The runs, each once; before anything is written it is known that all are there."""
    if where:
        meant = Where(where, STATUSES if running else ENDED)
        found = [info async for info in meant.find(client)]
        if not found:
            raise usage("no such runs: nothing was written")
    else:
        found = [await client.get(*name).describe() for name in dict.fromkeys(names)]
    going_on = [f"{info.workflow}/{info.id}" for info in found if info.status == "running"]
    if going_on and not running:
        more = f" and {len(going_on) - 5} more" if len(going_on) > 5 else ""
        raise usage(
            f"{', '.join(going_on[:5])}{more} {'has' if len(going_on) == 1 else 'have'} not ended: "
            "wait for the end, cancel, or export what is there now with --running; nothing was "
            "written"
        )
    return [(info.workflow, info.id) for info in reversed(found)]


@contextmanager
def _new_file(path: Path, force: bool) -> Iterator[BinaryIO]:
    """A file that is there when it is whole, and not before. What is no file (a device, a pipe) is
    written to as it is: nothing takes its place."""
    if path.exists() and not path.is_file():
        try:
            with path.open("wb") as file:
                yield file
        except OSError as error:
            raise usage(f"{path} cannot be written: {error.strerror}") from None
        return
    if path.exists() and not force:
        raise usage(f"{path} is there already: give another file, or --force")
    path = path.resolve()  # a link stays one
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise usage(f"{path} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
