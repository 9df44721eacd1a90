"""`perdure db`: the schema, what is in the database, and forgetting what is old."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perdure.stores.sqlite.migrate import VERSION
from tests.cli.commands import perdure, run

pytestmark = pytest.mark.usefixtures("folder")


def told(*words: str) -> Any:
    return json.loads(perdure("db", *words, "--json").stdout)


def test_migrate_makes_the_database_and_finds_it_current_afterwards() -> None:
    assert perdure("db", "migrate").stderr == f"made, schema {VERSION}\n"
    assert perdure("db", "migrate").stderr == f"schema {VERSION} is current\n"
    assert told("migrate") == {
        "store": "sqlite:///perdure.db", "before": VERSION, "schema": VERSION,
    }  # fmt: skip


def test_status_tells_schema_sizes_and_runs() -> None:
    perdure("start", "greeting.json", "--id", "a")
    run("greeting.json", "--id", "b", "--input", '{"name": "Ann"}')
    document = told("status")
    assert (document["schema"], document["current"]) == (VERSION, True)
    assert document["size"] > 0
    assert sum(document["runs"].values()) >= 2
    lines = dict(line.split(maxsplit=1) for line in perdure("db", "status").stdout.splitlines())
    assert lines["schema"] == f"{VERSION} (current)"
    assert lines["completed"] == str(document["runs"]["completed"])


def of_schema_3() -> None:
    """The database as schema 3 had it."""
    with closing(sqlite3.connect("perdure.db", isolation_level=None)) as db:
        db.execute("DROP INDEX run_stalled")
        db.execute("CREATE INDEX run_stalled ON run (definition) WHERE stalled IS NOT NULL")
        db.execute("ALTER TABLE definition DROP COLUMN max_duration")
        db.execute("UPDATE meta SET value = 3 WHERE key = 'schema'")


@pytest.mark.parametrize(
    "words", [("db", "status"), ("watch", "--timeout", "0.1s"), ("watch", "greeting/a")]
)
def test_what_only_looks_brings_no_schema_up_to_date(words: tuple[str, ...]) -> None:
    perdure("start", "greeting.json", "--id", "a")
    of_schema_3()
    looked = perdure(*words, code=0 if words[0] == "db" else 5).output
    assert "schema" in looked
    document = told("status")
    assert (document["schema"], document["current"], document["runs"]) == (3, False, {})
    assert perdure("db", "migrate").stderr == f"schema 3 is now {VERSION}\n"


def test_what_only_looks_takes_no_lock() -> None:
    """Nor does it need one: of a SQLite library that lets one process write, that has it."""
    run("greeting.json", "--id", "a", "--input", '{"name": "Ann"}')
    for left in Path().glob("perdure.db-*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    for words in (("db", "status"), ("watch", "--timeout", "0.1s"), ("watch", "greeting/a")):
        perdure(*words)
    assert not Path("perdure.db-lock").exists()


def test_purge_forgets_runs_past_their_retention_and_no_others() -> None:
    run("greeting.json", "--id", "old", "--input", '{"name": "Ann"}')
    run("greeting.json", "--id", "new", "--input", '{"name": "Ann"}')
    assert told("purge")["purged"] == 0
    with closing(sqlite3.connect("perdure.db", isolation_level=None)) as db:
        db.execute("UPDATE run SET finished = 1, purge_at = 2 WHERE id = 'old'")
    assert perdure("db", "purge", "--limit", "5").stderr == "1 run forgotten\n"
    assert [one["id"] for one in json.loads(perdure("list", "--json").stdout)["runs"]] == ["new"]


def test_a_file_that_is_not_ours_is_told_and_left_alone() -> None:
    Path("perdure.db").write_bytes(b"this is no database at all" * 100)
    for words in (("migrate",), ("status",), ("purge",)):
        assert "perdure.db" in perdure("db", *words, code=5).stderr
    assert Path("perdure.db").read_bytes() == b"this is no database at all" * 100


@pytest.mark.parametrize("command", ["migrate", "status", "purge"])
def test_a_store_without_a_file_has_no_database(command: str) -> None:
    assert "one process" in perdure("db", command, "--store", "memory:", code=2).stderr
