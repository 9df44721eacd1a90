"""What a shell completes: names of runs and workflows, read from the store.

Called at a keypress: it reads little, waits for nothing, and says nothing where something is
wrong; a database is never made.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from click.shell_completion import CompletionItem

from perdure.cli.stores import DEFAULT_STORE

if TYPE_CHECKING:
    import click

    from perdure.stores.sqlite.driver import Connection

#: What is offered at most: of runs the newest.
OFFERED: Final = 50
#: Names that a shell takes as they are. It puts what it is offered into the command line unquoted,
#: and others may choose ids: `7;rm x` would be two commands.
_PLAIN: Final = re.compile(r"[\w@%+=:,./-]+")


def workflows(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Names of workflows that begin so."""
    return _quietly(ctx, lambda db: _workflows(db, incomplete))


def runs(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """`workflow/`, and after the slash ids of its runs."""
    return _quietly(ctx, lambda db: _runs(db, incomplete))


def with_files(names: list[CompletionItem], incomplete: str) -> list[CompletionItem]:
    """These, and files that begin so: named one by one, since a shell that is asked for files of
    its own forgets the names."""
    if not names:
        return [CompletionItem(incomplete, type="file")]
    folder, _, start = incomplete.rpartition("/")
    found: list[str] = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder or ("/" if incomplete.startswith("/") else ".")):
            plain = _PLAIN.fullmatch(entry.name) and not entry.name.startswith(".")
            if plain and entry.is_file() and entry.name.startswith(start):
                found.append(f"{folder}/{entry.name}" if folder else entry.name)
    return [*names, *map(CompletionItem, sorted(found)[:OFFERED])]


def _workflows(db: Connection, incomplete: str) -> list[CompletionItem]:
    from perdure.stores.sqlite.completing import names_from

    return [CompletionItem(name) for name in names_from(db, incomplete, OFFERED)]


def _runs(db: Connection, incomplete: str) -> list[CompletionItem]:
    from perdure.stores.sqlite.completing import ids_from

    workflow, slash, start = incomplete.partition("/")
    names = [workflow] if slash else [item.value for item in _workflows(db, workflow)]
    if not slash and len(names) != 1:
        return [CompletionItem(f"{name}/") for name in names]
    chosen = names[0]
    found = ids_from(db, chosen, start, OFFERED)
    plain = [(id, status) for id, status in found if _PLAIN.fullmatch(id)]
    return [CompletionItem(f"{chosen}/{id}", help=status) for id, status in plain]


def _quietly(
    ctx: click.Context, look: Callable[[Connection], list[CompletionItem]]
) -> list[CompletionItem]:
    from perdure.client.urls import sqlite_file
    from perdure.stores.sqlite.driver import connect

    with contextlib.suppress(Exception):
        store = ctx.params.get("store") or os.environ.get("PERDURE_STORE") or DEFAULT_STORE
        file = Path(sqlite_file(store) or "").resolve()
        if file.is_file():
            with closing(connect(file, "ro")) as db:
                return look(db)
    return []
