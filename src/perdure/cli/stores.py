"""The store that a command works on: which it is unless somebody says so, what it has to be, and
how a command that people are told to type names it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from perdure.cli.exits import STORE, Trouble, usage

DEFAULT_STORE: Final = "sqlite:///perdure.db"


def command_of(*words: str, store: str) -> str:
    """A command of perdure's to tell people, naming the store where it is not the usual one."""
    usual = os.environ.get("PERDURE_STORE") or DEFAULT_STORE
    return shlex.join(["perdure", *words, *(() if store == usual else ("--store", store))])


def outlives(store: str) -> bool:
    """Whether a store of this URL is still there when its process has ended."""
    from perdure.client.urls import sqlite_file, store_of

    store_of(store)
    return sqlite_file(store) is not None


def shared(store: str) -> str:
    """The URL of a store that several processes see; complains about any other."""
    if not outlives(store):
        raise usage(f"the store {store} lives and dies with one process: use a sqlite:/// file")
    return store


def existing(store: str) -> str:
    """The URL of a store that can hold runs of other processes, checked before it is opened:
    opening would make a new, empty database where none is."""
    from perdure.client.urls import sqlite_file

    file = sqlite_file(shared(store)) or ""
    if not Path(file).exists():
        raise Trouble(
            f"there is no database {file}: name the one you mean with --store or PERDURE_STORE",
            STORE,
            "store",
        )
    return store
