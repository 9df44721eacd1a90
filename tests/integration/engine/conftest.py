"""Stores that processes die at, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.stores.sqlite.store import SqliteStore
from tests.virtual.crashing import Opener
from tests.virtual.stores import VirtualStore


@pytest.fixture(params=["memory", "sqlite"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Opener]:
    """Makes a new store each time; what is given opens that one, as another process would."""
    if request.param == "sqlite":
        paths = iter(range(1000))

        def file() -> Opener:
            path = tmp_path / f"{next(paths)}.db"
            return lambda: SqliteStore(path, synchronous="normal")

        return file

    def memory() -> Opener:
        store = VirtualStore()
        return lambda: store

    return memory
