"""`perdure db`: the database itself: its schema, what is in it, and forgetting what is old."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from perdure.cli.options import json_option, store_option
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.stores import existing, shared

if TYPE_CHECKING:
    from perdure.client.client import Client

#: Of one status, more runs than this are not counted.
COUNTED: Final = 10_000
#: How many runs are forgotten in one transaction.
BATCH: Final = 500

_STATUSES: Final = ("running", "completed", "failed", "canceled")


@click.group(short_help="Migrate, look at, purge the database.")
def db() -> None:
    """The database: migrate its schema, look at it, purge what is old."""


@db.command()
@store_option
@json_option
def migrate(store: str, as_json: bool) -> None:
    """Make the database, or bring its schema up to date. Opening a worker does the same."""
    import asyncio

    from perdure.client.client import Client

    async def main() -> tuple[int, int]:
        before = schema_of(store)
        async with Client(store):
            return before, schema_of(store)

    before, now = asyncio.run(main())
    if as_json:
        print_json({"store": store, "before": before, "schema": now})
    elif before == now:
        say(f"schema {now} is current", err=True)
    else:
        say(f"schema {before} is now {now}" if before else f"made, schema {now}", err=True)


@db.command(short_help="Show the schema, the size, how many runs.")
@store_option
@json_option
def status(store: str, as_json: bool) -> None:
    """Show the schema, the size, and how many runs there are of each status."""
    import asyncio

    from perdure.client.urls import sqlite_file
    from perdure.stores.sqlite.driver import dotted, version
    from perdure.stores.sqlite.migrate import VERSION

    file = sqlite_file(existing(store))
    assert file is not None
    schema = schema_of(store)
    told: dict[str, Any] = {
        "store": store,
        "schema": schema,
        "current": schema == VERSION,
        "sqlite": dotted(version()),
        "size": _size(file),
        "log_size": _size(f"{file}-wal"),
        # To count is to read, and of another schema to bring it up to date first.
        "runs": asyncio.run(_counts(store)) if schema == VERSION else {},
    }
    if as_json:
        print_json(told)
        return
    current = "current" if told["current"] else f"perdure db migrate brings it to {VERSION}"
    rows = [
        ("store", store),
        ("schema", f"{schema} ({current})"),
        ("size", f"{_mib(told['size'])}, log {_mib(told['log_size'])}"),
        ("sqlite", told["sqlite"]),
        *((name, _counted(count)) for name, count in told["runs"].items()),
    ]
    for title, text in rows:
        say(f"{title.ljust(9)}  {text}")


@db.command(short_help="Forget runs that are past their retention.")
@click.option("--limit", type=click.IntRange(1), help="At most so many runs. Default: all.")
@store_option
@json_option
def purge(limit: int | None, store: str, as_json: bool) -> None:
    """Forget ended runs that are past their retention, with everything of theirs."""
    import asyncio

    count = asyncio.run(_purge(existing(store), limit))
    if as_json:
        print_json({"store": store, "purged": count})
    else:
        say(f"{count} run{'' if count == 1 else 's'} forgotten", err=True)


async def _purge(store: str, limit: int | None) -> int:
    from perdure.client.client import Client

    total = 0
    async with Client(store) as client:
        while limit is None or total < limit:
            batch = BATCH if limit is None else min(BATCH, limit - total)
            gone = await client._store.purge(batch)
            total += gone
            if gone < batch:
                break
    return total


async def _counts(store: str) -> dict[str, int]:
    """Runs by status; the stalled ones are among the running ones."""
    from perdure.client.client import Client
    from perdure.client.urls import store_of

    async with Client(store_of(store, read_only=True)) as client:
        found = {status: await _count(client, status) for status in _STATUSES}
        found["stalled"] = await _count(client, "running", stalled=True)
        return found


async def _count(client: Client, status: Any, *, stalled: bool = False) -> int:
    count = seen = 0
    async for info in client.runs(status=status):
        seen += 1
        count += info.stalled is not None if stalled else 1
        if seen > COUNTED:
            break
    return count


def schema_of(store: str) -> int:
    """The version of a database's schema; 0 where there is none yet. Writes nothing. Raises
    StoreError for a file that is not perdure's, or of a newer one."""
    from contextlib import closing

    from perdure.client.urls import sqlite_file
    from perdure.stores.sqlite.driver import Error, connect, explain, patiently
    from perdure.stores.sqlite.migrate import check_schema
    from perdure.stores.sqlite.transaction import Transaction

    path = Path(sqlite_file(shared(store)) or "").resolve()
    if not path.exists():
        return 0

    def read() -> int:
        with closing(connect(path, "ro")) as db, Transaction(db, write=False):
            return check_schema(db, path)

    try:
        return patiently(read, 5.0)
    except Error as error:
        raise explain(error, path) from error


def _size(file: str) -> int:
    path = Path(file)
    return path.stat().st_size if path.exists() else 0


def _mib(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MiB"


def _counted(count: int) -> str:
    return f"more than {COUNTED}" if count > COUNTED else str(count)
