"""Whether a database is still where it was: seen before every write, with one look if possible."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.model.errors import StoreError
from perdure.stores.sqlite.in_place import InPlace

LONG_AGO = 1_000_000_000


@pytest.fixture
def database(tmp_path: Path) -> Path:
    for name in ("x.db", "x.db-wal", "x.db-shm"):
        (tmp_path / name).write_bytes(b"x")
    return tmp_path / "x.db"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that are looked at."""
    seen: list[str] = []
    real = os.stat

    def stat(path: Any, **options: Any) -> os.stat_result:
        seen.append(Path(path).name)
        return real(path, **options)

    monkeypatch.setattr("perdure.stores.sqlite.in_place.os.stat", stat)
    return seen


def at(folder: Path, seconds: float) -> None:
    """The folder changed last at this time."""
    os.utime(folder, (seconds, seconds))


def remembered(database: Path) -> InPlace:
    place = InPlace(database)
    place.remember()
    return place


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    path.with_name("new").write_bytes(b"y")
    path.with_name("new").rename(path)


def test_a_folder_in_which_nothing_changed_is_all_that_is_looked_at(
    database: Path, looks: list[str]
) -> None:
    at(database.parent, LONG_AGO)
    place = remembered(database)
    place.check()
    looks.clear()
    for _ in range(5):
        place.check()
    assert looks == [database.parent.name] * 5


@pytest.mark.parametrize("change", [moved, replaced, Path.unlink])
@pytest.mark.parametrize("name", ["x.db", "x.db-wal", "x.db-shm"])
def test_whatever_happens_to_one_of_the_files_is_seen(
    database: Path, name: str, change: Callable[[Path], Any]
) -> None:
    at(database.parent, LONG_AGO)
    place = remembered(database)
    place.check()
    place.check()
    change(database.with_name(name))
    for _ in range(2):
        with pytest.raises(StoreError, match="moved, deleted or replaced while in use"):
            place.check()


def test_it_is_in_place_again_once_it_is_put_back(database: Path) -> None:
    at(database.parent, LONG_AGO)
    place = remembered(database)
    place.check()
    moved(database)
    with pytest.raises(StoreError):
        place.check()
    database.with_name("elsewhere").rename(database)
    place.check()


def test_a_change_at_the_very_moment_of_the_one_before_is_seen_too(database: Path) -> None:
    now = database.parent.stat().st_mtime
    at(database.parent, now)
    place = remembered(database)
    place.check()
    moved(database)
    at(database.parent, now)
    with pytest.raises(StoreError):
        place.check()


def test_another_folder_in_the_place_of_its_own_is_seen(database: Path) -> None:
    folder = database.parent
    at(folder, LONG_AGO)
    place = remembered(database)
    place.check()
    folder.rename(folder.with_name("away"))
    with pytest.raises(StoreError):
        place.check()
    folder.mkdir()
    database.write_bytes(b"x")
    at(folder, LONG_AGO)
    with pytest.raises(StoreError):
        place.check()


def test_behind_a_link_each_file_is_looked_at(database: Path, looks: list[str]) -> None:
    link = database.parent / "far" / "y.db"
    link.parent.mkdir()
    link.symlink_to(database)
    at(link.parent, LONG_AGO)
    place = remembered(link)
    place.check()
    moved(database)
    with pytest.raises(StoreError):
        place.check()
