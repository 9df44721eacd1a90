"""Migrating: a database of an older schema is brought up to date where it stands, with all that is
in it, and a process that still speaks that schema goes on working on it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from perdure.codec.journal import decode_row
from perdure.conformance.rows import BODY, BORN, HASH, commit, key, message, row, worker
from perdure.kernel.actions import Claimed
from perdure.stores.answers import Posted
from perdure.stores.port import LEASE
from perdure.stores.rows import NEVER
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite.driver import Connection, sqlite3
from perdure.stores.sqlite.migrate import VERSION, _apply
from perdure.stores.sqlite.transaction import Transaction

SOON = 4_000_000_000_000_000


def old_statements(schema: int) -> dict[str, str]:
    """Name -> text of the statements of a schema."""
    text = (Path(__file__).parent / f"statements_{schema}.sql").read_text(encoding="utf-8")
    named = {}
    for block in text.split("\n-- ")[1:]:
        name, _, statement = block.partition("\n")
        named[name] = statement.rstrip().removesuffix(";")
    return named


OLD = old_statements(1)
OLD_3 = old_statements(3)


@contextmanager
def opened(path: Path) -> Iterator[Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def schema(path: Path) -> list[tuple[str, str, str]]:
    with opened(path) as db:
        listed = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
        return db.execute(listed).fetchall()


def old_database(path: Path) -> None:
    """A database as schema 1 left it: a run of each kind, a worker, a definition."""
    with opened(path) as db:
        with Transaction(db):
            _apply(db, 1)
        db.execute(OLD["add_worker"], ("w1", "tests", "here", 1, BORN))
        db.execute(OLD["define"], (HASH, "order", "1", "graph", b"{}", BORN))
        born = ((1, "w1", NEVER), (2, None, BORN), (3, None, SOON), (4, "w1", NEVER), (5, "w1", 0))
        for n, owner, ready_at in born:
            run = (key(n), "order", f"run-{n}", "1", HASH, "running", BORN, owner, ready_at)
            db.execute(OLD["insert_runs"], (*run, None, b"{}", *(None,) * 7))
            db.execute(OLD["append_first"], (key(n), 1, BORN, owner or "client", 1, 0, BODY))
        db.execute(OLD["append"], (key(1), 2, BORN + 1, "w1", 2, 0, BODY))
        db.execute(OLD["keep_payloads"], (key(1), 2, 0, b"big"))
        ended = (key(4), "w1", 0, "completed", NEVER, None, BORN + 2, b"7", None, None, None, BORN)
        db.execute(OLD["let_go"], ended)
        stuck = (key(5), "w1", 0, "running", NEVER, "stuck", *(None,) * 6)
        db.execute(OLD["let_go"], stuck)


def played(path: Path, scene: Callable[[SqliteStore], object]) -> None:
    async def main() -> None:
        store = SqliteStore(path, synchronous="normal", unsafe=True)
        await store.open()
        try:
            await scene(store)  # type: ignore[misc]
        finally:
            await store.close()

    asyncio.run(main())


async def nothing(store: SqliteStore) -> None:
    """Opening is enough."""


def test_a_migrated_schema_is_the_schema_of_a_new_file(tmp_path: Path) -> None:
    old_database(tmp_path / "old.db")
    assert len(schema(tmp_path / "old.db")) > 0
    for name in ("old.db", "new.db"):
        played(tmp_path / name, nothing)
    assert schema(tmp_path / "old.db") == schema(tmp_path / "new.db")
    with opened(tmp_path / "old.db") as db:
        assert db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() == (
            str(VERSION),
        )
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_runs_of_an_old_database_are_there_and_go_on(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    old_database(path)

    async def scene(store: SqliteStore) -> None:
        # Its worker had no lease: its lock alone says that it is dead.
        assert await store.register(worker("w2")) == 1
        loaded = await store.load(key(1))
        assert [r.seq for r in loaded.journal] == [1, 2, 3]
        assert decode_row(loaded.journal[2].body)[0].actions == [Claimed("w2")]
        assert await store.payloads(key(1), [(2, 0)]) == [b"big"]
        claims = await store.claim_runs("w2", ["order"], 9)
        assert [claim.key for claim in claims] == [key(2), key(1)]
        assert await commit(store, row(1, 4, writer="w2")) == ["accepted"]
        # A start that was to wait does so, although mail makes it due.
        assert await store.post([message(3, "a")]) == [Posted("posted", 1, key(3))]
        delayed = (await store.load(key(3))).run
        assert (delayed.not_before, delayed.mail) == (SOON, 1)
        assert delayed.ready_at <= store.now()
        assert (await store.load(key(2))).run.not_before == BORN
        assert (await store.load(key(5))).run.stalled == "stuck"
        assert await store.unstall(["order"]) == 1
        done = (await store.load(key(4))).run
        assert (done.status, done.output, done.finished) == ("completed", b"7", BORN + 2)
        assert await store.purge(9) == 1

    played(path, scene)


@pytest.mark.parametrize(
    ("schema", "name"), [*((1, name) for name in sorted(OLD)), *((3, name) for name in OLD_3)]
)
def test_every_statement_of_an_older_schema_is_valid_on_today_s(
    tmp_path: Path, schema: int, name: str
) -> None:
    played(tmp_path / "runs.db", nothing)
    statement = {1: OLD, 3: OLD_3}[schema][name]
    with opened(tmp_path / "runs.db") as db:
        if named := re.findall(r":(\w+)", statement):
            db.execute(f"EXPLAIN {statement}", dict.fromkeys(named, 1))
        else:
            db.execute(f"EXPLAIN {statement}", [1] * statement.count("?"))


def test_an_old_process_and_a_new_one_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    old_database(path)

    async def scene(store: SqliteStore) -> None:
        assert store._workers.take("w9")  # its process is alive
        with opened(path) as db:
            db.execute(OLD["add_worker"], ("w9", "tests", "here", 1, BORN))
            born = (key(9), "order", "run-9", "1", HASH, "running", BORN, None, 5, None, b"{}")
            db.execute(OLD["insert_runs"], (*born, *(None,) * 7))
            db.execute(OLD["append_first"], (key(9), 1, BORN, "client", 1, 0, BODY))
            [claimed] = db.execute(OLD["claim"], ("w9", key(9))).fetchall()
            assert claimed[0] == key(9)
            db.execute(OLD["append"], (key(9), 2, BORN, "w9", 1, 0, BODY))
            now = store.now()
            store.now = lambda: now + 10 * LEASE  # type: ignore[method-assign]
            await store.register(worker("w2"))
            # It does not beat, and is not taken for dead.
            assert (await store.load(key(9))).run.owner == "w9"
            assert (await store.post([message(9, "a")]))[0].outcome == "posted"
            assert await commit(store, row(9, 2, writer="w2")) == ["refused"]
            let_go = (key(9), "w9", 1, "running", 7, *(None,) * 7)
            assert db.execute(OLD["let_go"], let_go).rowcount == 1
        [claim] = [c for c in await store.claim_runs("w2", ["order"], 9) if c.key == key(9)]
        assert claim.epoch == 2
        assert [mail.id for mail in (await store.load(key(9))).mail] == ["a"]

    played(path, scene)


def database_3(path: Path) -> None:
    """A database as schema 3 left it: a workflow that is known, and a stalled run."""
    old_database(path)
    with opened(path) as db:
        with Transaction(db):
            _apply(db, 2)
            _apply(db, 3)
        db.execute(OLD_3["define"], ("w", "greet", "1", "workflow", b"", BORN))


def test_stalled_runs_and_definitions_of_schema_3_are_there_after_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    database_3(path)

    async def scene(store: SqliteStore) -> None:
        known = await store.latest_definition("greet")
        assert (known.hash, known.created, known.max_duration) == ("w", BORN, None)
        await store.define(msgspec.structs.replace(known, max_duration=7))
        with opened(path) as db:
            # A process of before makes it known again, and finds what it looks for.
            db.execute(OLD_3["define"], ("w", "greet", "1", "workflow", b"", BORN + 9))
            assert db.execute(OLD_3["count_stalled"]).fetchone() == (1,)
            due = db.execute(OLD_3["first_due"], {"names": '["order"]'}).fetchone()
            assert due == (BORN,)
        assert (await store.latest_definition("greet")).max_duration == 7
        await store.register(worker("w2"))
        assert await store.unstall(["order"]) == 1
        claims = await store.claim_runs("w2", ["order"], 9)
        assert key(5) in [claim.key for claim in claims]

    played(path, scene)
