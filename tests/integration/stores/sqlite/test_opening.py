"""Opening: a file is made, brought up to date or refused, and never damaged by the refusal."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure.conformance.rows import commit, key, new, row, start
from perdure.model.errors import InvalidOptions, StoreError
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite import sharing as module
from perdure.stores.sqlite.driver import sqlite3
from perdure.stores.sqlite.migrate import VERSION

NOBODY = 65534


async def opened(path: Path) -> None:
    store = SqliteStore(path, busy_timeout=0.2)
    await store.open()
    await store.close()


def refused(path: Path) -> str:
    """The error of opening a file; the file is as it was."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError) as caught:
        asyncio.run(opened(path))
    assert str(path) in str(caught.value)
    if before is not None:
        assert path.read_bytes() == before
    return str(caught.value)


def filled(path: Path, runs: int = 200) -> None:
    """A database with runs, closed properly."""

    async def main() -> None:
        store = SqliteStore(path, synchronous="normal")
        await store.open()
        await start(store, *[new(n, owner="w1") for n in range(runs)])
        await commit(store, *[row(n, 2, body=b"%500d" % n) for n in range(runs)])
        await store.close()

    asyncio.run(main())


def execute(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def test_a_new_file_is_made_and_an_empty_one_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    for name in ("new.db", "empty.db", "with space & % ? # ö.db"):
        path = tmp_path / name
        asyncio.run(opened(path))
        assert path.read_bytes()[:16] == b"SQLite format 3\x00"
        assert path.read_bytes()[68:72] == b"Perd"
        asyncio.run(opened(path))


def test_closing_leaves_one_whole_file_and_no_log(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    filled(path)
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == ["runs.db", "runs.db-lock"]


def test_opening_and_closing_twice_is_harmless(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        await store.open()
        await store.open()
        await store.close()
        await store.close()
        await store.open()
        assert [s.outcome for s in await start(store, new(1))] == ["created"]
        await store.close()

    asyncio.run(main())


def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        for attempt in (
            store.load(key(1)), start(store, new(1)), commit(store, row(1, 2)),
            store.unregister("w1"),
        ):  # fmt: skip
            with pytest.raises(StoreError, match="is not open"):
                await attempt

    asyncio.run(main())


@pytest.mark.parametrize("path", ["", ":memory:", ":temp:"])
def test_what_is_no_file_is_refused_with_the_way_out(path: str) -> None:
    with pytest.raises(InvalidOptions, match="MemoryStore"):
        SqliteStore(path)


def test_another_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptions, match="'full' or 'normal'"):
        SqliteStore(tmp_path / "runs.db", synchronous="off")  # type: ignore[arg-type]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "runs.db"
    with pytest.raises(StoreError, match="nowhere does not exist: create it"):
        asyncio.run(opened(path))
    assert not path.parent.exists()


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.db").mkdir()
    assert "is a folder" in refused(tmp_path / "runs.db")


@pytest.mark.parametrize("content", [b"hello", b"\x00" * 5000, b"SQLite format 2\x00" + b"x" * 99])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    assert "is not a SQLite database" in refused(path)


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    tables, marked = tmp_path / "tables.db", tmp_path / "marked.db"
    execute(tables, "CREATE TABLE customers (id INTEGER)", "INSERT INTO customers VALUES (1)")
    execute(marked, "PRAGMA application_id = 77", "PRAGMA user_version = 3")
    assert "belongs to another program" in refused(tables)
    assert "belongs to another program" in refused(marked)


def test_a_database_of_a_newer_perdure_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    filled(path)
    execute(path, "UPDATE meta SET value = '7' WHERE key = 'schema'")
    message = refused(path)
    assert f"has schema 7, this perdure knows {VERSION}" in message
    assert "upgrade perdure" in message


def test_another_edition_of_the_schema_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    filled(path)
    execute(path, "UPDATE meta SET value = 'x' WHERE key = 'migration 0001'")
    with pytest.raises(StoreError, match="another edition of schema 1"):
        asyncio.run(opened(path))


def test_a_schema_that_says_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    filled(path)
    execute(path, "DELETE FROM meta")
    assert "does not say its schema" in refused(path)


@pytest.mark.parametrize("left", [0.5, 0.97])
def test_a_file_that_lost_its_end_is_refused(tmp_path: Path, left: float) -> None:
    path = tmp_path / "runs.db"
    filled(path)
    os.truncate(path, int(path.stat().st_size * left))
    assert "is damaged" in refused(path)


def test_damage_at_the_start_is_found_when_opening(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    filled(path)
    data = bytearray(path.read_bytes())
    data[100:4096] = os.urandom(3996)
    path.write_bytes(data)
    assert "is damaged" in refused(path)


def test_damage_inside_is_a_clear_error_where_it_is_met(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    filled(path)
    data = bytearray(path.read_bytes())
    data[4096 * 8 :] = b"\xa5" * (len(data) - 4096 * 8)
    path.write_bytes(data)

    async def main() -> None:
        store = SqliteStore(path)
        await store.open()
        try:
            for n in range(0, 200, 10):
                await store.load(key(n))
        finally:
            await store.close()

    with pytest.raises(StoreError, match=r"runs\.db is damaged.*backup"):
        asyncio.run(main())


@contextmanager
def without_rights() -> Iterator[None]:
    """As somebody who owns nothing, since permissions mean nothing to a superuser."""
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        yield


def readable_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    outer = Path(tempfile.gettempdir()).resolve()
    for part in (folder, tmp_path, *tmp_path.parents):
        if outer in part.parents:
            part.chmod(part.stat().st_mode | 0o555)
    return folder


def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    folder = readable_folder(tmp_path)
    path = folder / "runs.db"
    filled(path)
    (folder / "runs.db-lock").chmod(0o666)
    path.chmod(0o444)
    folder.chmod(0o777)
    with without_rights():
        assert "cannot be written" in refused(path)


def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    folder = readable_folder(tmp_path)
    folder.chmod(0o555)
    with without_rights(), pytest.raises(StoreError, match="check the permissions"):
        asyncio.run(opened(folder / "runs.db"))
    assert list(folder.iterdir()) == []


def test_many_may_open_a_new_file_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # scenario 104
    monkeypatch.setattr(module, "has_wal_reset_bug", lambda: False)

    async def main() -> None:
        stores = [SqliteStore(tmp_path / "runs.db") for _ in range(8)]
        await asyncio.gather(*[store.open() for store in stores])
        for n, store in enumerate(stores):
            assert [s.outcome for s in await start(store, new(n))] == ["created"]
        for store in stores:
            await store.close()

    asyncio.run(main())


def test_names_that_lead_to_one_file_share_its_lock(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "runs.db")
    a, b = SqliteStore(tmp_path / "runs.db"), SqliteStore(tmp_path / "link.db")
    assert a.path == b.path
