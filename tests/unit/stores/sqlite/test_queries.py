"""The SQL files: each is used, each walks the index made for it, rows of parameters repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from perdure.stores.sqlite.driver import Connection, sqlite3
from perdure.stores.sqlite.migrate import VERSION
from perdure.stores.sqlite.queries import (
    MOST_ROWS,
    filled,
    insert_many,
    make_views,
    migration,
    query,
    query_for,
    statements,
)

PACKAGE = Path(str(files("perdure.stores.sqlite")))
NAMES = sorted(path.stem for path in (PACKAGE / "queries").glob("*.sql"))
#: Asked by hand, and counting all runs is what is asked for.
FOR_PEOPLE = {"list_definitions"}
PARTS = {"run_columns", "crash_count", "last_read"}


@pytest.fixture(scope="module")
def db() -> Iterator[Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for number in range(1, VERSION + 1):
        for statement in statements(migration(number)):
            connection.execute(statement)
    make_views(connection)
    yield connection
    connection.close()


def plan(db: Connection, name: str) -> list[str]:
    sql = query(name)
    if sql.startswith("CREATE TEMP TRIGGER"):
        return [step for part in inside(sql) for step in plan_of(db, part)]
    return plan_of(db, sql)


def inside(trigger: str) -> list[str]:
    """The statements of a trigger, as if they stood alone."""
    body = trigger.partition("BEGIN\n")[2].removesuffix("END")
    body = re.sub(r"raise\(.*?\)", "1", re.sub(r"\bnew\.\w+", "1", body))
    return [part.strip() for part in body.split(";\n") if part.strip()]


def plan_of(db: Connection, sql: str) -> list[str]:
    named = set(re.findall(r":(\w+)", sql))
    values = dict.fromkeys(named, 1) if named else [1] * sql.count("?")
    return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PARTS])
def test_every_query_is_valid_and_walks_no_table_of_runs_or_rows(db: Connection, name: str) -> None:
    steps = plan(db, name)
    walks = [step for step in steps if re.match(r"SCAN (run|journal|payload|mailbox)\b", step)]
    # They hold stalled runs alone, and those that went on as new since the last purge: few.
    few = ("SCAN run USING INDEX run_stalled", "SCAN run USING INDEX run_trim")
    walks = [step for step in walks if step not in few]
    assert walks == ([] if name not in FOR_PEOPLE else ["SCAN run"])


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("due", "run_claim (definition=? AND ready_at<?)"),
        ("held", "run_owner (owner=?)"),
        ("release_all", "run_owner (owner=?)"),
        ("on_last_row", "sqlite_autoindex_run_1 (key=?)"),
        ("on_last_row", "waiter_run (definition=? AND id=?)"),
        ("on_row", "sqlite_autoindex_run_1 (key=?)"),
        ("take_over", "sqlite_autoindex_run_1 (key=?)"),
        ("seen_at_beat", "run_owner (owner=?)"),
        ("first_due", "run_claim (definition=?)"),
        ("due_stalled", "run_stalled (definition=? AND ready_at<?)"),
        ("mailed", "run_mail (owner=?)"),
        ("unregistered_owners", "run_owner (owner>?)"),
        ("unstall", "run_stalled (definition=?)"),
        ("purgeable", "run_purge (purge_at<?)"),
        ("addressee", "sqlite_autoindex_run_2 (definition=? AND id=?)"),
        ("letter", "sqlite_autoindex_mailbox_2 (run=? AND id=?)"),
        ("mail", "sqlite_autoindex_mailbox_1 (run=? AND n>?)"),
        ("park", "sqlite_autoindex_run_1 (key=?)"),
        ("number_letter", "sqlite_autoindex_run_1 (key=?)"),
        ("claim", "sqlite_autoindex_run_1 (key=?)"),
        ("append", "sqlite_autoindex_run_1 (key=?)"),
        ("load", "sqlite_autoindex_journal_1 (run=? AND seq>?)"),
        ("find_by_definition", "run_by_definition (definition=? AND created>? AND created<?)"),
        ("find_by_status", "run_by_status (status=? AND created>? AND created<?)"),
    ],
)
def test_a_query_walks_the_index_that_was_made_for_it(
    db: Connection, name: str, index: str
) -> None:
    assert any(step.endswith(index) for step in plan(db, name))


def test_a_row_that_is_written_walks_nothing(db: Connection) -> None:
    steps = [step for name in ("on_birth", "on_row", "on_last_row") for step in plan(db, name)]
    assert [step for step in steps if step.startswith("SCAN") and step != "SCAN CONSTANT ROW"] == []


def test_every_query_file_is_used_by_the_code() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py"))
    sql = "\n".join(query(name) for name in NAMES)
    included = {name for name in PARTS if f"{{{name}}}" not in sql}
    unused = [name for name in NAMES if f'"{name}"' not in code and name not in included]
    assert unused == []


def test_a_statement_whose_rows_are_counted_begins_as_python_expects() -> None:
    # sqlite3 counts the rows only of statements that begin with one of a few words.
    assert query("append").split()[0] == "INSERT"


@pytest.mark.parametrize("rows", [1, 16, 17, 63, 65, 200, MOST_ROWS, MOST_ROWS + 1, 1_700])
def test_many_rows_take_few_statements_of_few_lengths(db: Connection, rows: int) -> None:
    db.execute("BEGIN")
    asked: list[str] = []
    db.set_trace_callback(asked.append)
    values = [value for n in range(rows) for value in (b"k", 1, n, b"v")]
    try:
        assert insert_many(db, "keep_payloads", 4, values) == rows
    finally:
        db.set_trace_callback(None)
    assert db.execute("SELECT n FROM payload ORDER BY n").fetchall() == [(n,) for n in range(rows)]
    db.execute("ROLLBACK")
    assert len(asked) == -(-rows // MOST_ROWS)


def test_statements_are_of_few_lengths_and_never_too_short() -> None:
    lengths = [filled(rows) for rows in range(1, MOST_ROWS + 1)]
    assert all(length >= rows for rows, length in enumerate(lengths, 1))
    assert max(lengths) == MOST_ROWS
    assert len(set(lengths)) < 32


def test_a_row_of_parameters_is_repeated_and_nothing_else() -> None:
    assert query_for("append_first", 3).count("(?, ?, ?, ?, ?, ?, ?)") == 3
    assert query_for("append_first", 1) == query("append_first")
    assert query_for("claim", 2).endswith(
        "SET owner = ?, epoch = epoch + 1, stalled = NULL\nWHERE key IN (VALUES (?), (?))\n"
        "RETURNING key, definition, hash, epoch, mail, ready_at"
    )


def test_the_schema_has_the_indexes_of_the_design_and_the_journal_none_but_its_key(
    db: Connection,
) -> None:
    named = db.execute(
        "SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall()
    assert sorted(named) == [
        ("run", "run_by_definition"),
        ("run", "run_by_status"),
        ("run", "run_claim"),
        ("run", "run_mail"),
        ("run", "run_owner"),
        ("run", "run_purge"),
        ("run", "run_stalled"),
        ("run", "run_trim"),
        ("waiter", "waiter_parent"),
        ("waiter", "waiter_run"),
    ]


def test_every_time_a_run_is_due_is_known() -> None:
    # The least of null and a time is null: a run would never be due again.
    assert "ready_at INTEGER NOT NULL" in migration(1)
