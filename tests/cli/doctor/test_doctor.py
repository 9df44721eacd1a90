"""`doctor`: what is well, what may hurt and what does not work, each with what to do."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perdure.cli.doctor import machine, place
from perdure.stores.rows import WorkerInfo
from perdure.stores.sqlite import SqliteStore
from tests.cli.commands import perdure, run
from tests.tidy.tree import ROOT

NAMED = ("--input", '{"name": "Ann"}', "--id")


class Told(NamedTuple):
    level: str
    text: str
    advice: str | None


def doctor(*words: str, code: int = 0) -> dict[str, Told]:
    """The checks by topic."""
    document = json.loads(perdure("doctor", "--json", *words, code=code).stdout)
    assert document["ok"] is (code == 0)
    return {
        one["topic"]: Told(one["level"], one["text"], one["advice"]) for one in document["checks"]
    }


def change(statement: str, *values: Any) -> None:
    with closing(sqlite3.connect("perdure.db", isolation_level=None)) as db:
        db.execute(statement, values)


@pytest.fixture
def used(folder: Path) -> None:
    """A store with a run that has ended."""
    run("greeting.json", *NAMED, "ann")


@pytest.mark.usefixtures("used")
def test_where_all_is_well_every_line_is_ok_and_the_exit_code_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("perdure.stores.sqlite.driver.has_wal_reset_bug", lambda: False)
    checks = doctor()
    assert {topic: told for topic, told in checks.items() if told.level != "ok"} == {}
    assert set(checks) >= {
        "perdure", "python", "platform", "sqlite", "extra http", "store", "rights", "file system",
        "disk", "log", "locks", "schema", "journal mode", "sync", "integrity", "clock", "workers",
        "stalled", "overdue",
    }  # fmt: skip
    result = perdure("doctor")
    assert all(line.startswith("ok    ") for line in result.stdout.splitlines())
    assert result.stderr.endswith(" ok, 0 warnings, 0 failures\n")


@pytest.mark.usefixtures("folder")
def test_where_there_is_no_database_yet_none_is_made() -> None:
    assert "not there yet" in doctor()["store"].text
    assert not list(Path().glob("perdure.db*"))
    nowhere = doctor("--store", "sqlite:///no/such/folder.db", code=1)["folder"]
    assert (nowhere.level, nowhere.advice) == ("fail", "create it, or give another path")
    assert doctor("--store", "memory:")["store"].level == "warn"
    assert "is not known" in perdure("doctor", "--store", "odd:", code=2).stderr


# ------------------------------------------------------------------------------ what is installed


@pytest.mark.usefixtures("folder")
def test_a_library_that_can_lose_commits_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.stores.sqlite.driver.version", lambda: (3, 40, 1))
    sqlite = doctor()["sqlite"]
    assert sqlite.level == "warn"
    assert "SQLite 3.40.1" in sqlite.text
    assert sqlite.advice == "pip install 'perdure[sqlite-latest]'"


@pytest.mark.usefixtures("folder")
def test_a_library_that_is_too_old_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.stores.sqlite.driver.version", lambda: (3, 30, 0))
    assert doctor(code=1)["sqlite"].level == "fail"


@pytest.mark.usefixtures("folder")
def test_two_libraries_that_overwrite_one_another_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "installed", lambda name: "0.6.1")
    both = doctor(code=1)["pysqlite3"]
    assert both.level == "fail"
    assert (both.advice or "").startswith("pip uninstall -y pysqlite3-binary pysqlite3, then ")


@pytest.mark.usefixtures("folder")
def test_one_of_a_kind_is_counted_as_one() -> None:
    assert perdure("doctor", "--store", "memory:").stderr.endswith(" ok, 1 warning, 0 failures\n")


def test_an_extra_that_is_missing_says_what_it_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "installed", lambda name: None)
    assert doctor()["extra http"] == Told(
        "ok", "not installed; for HTTP nodes: pip install 'perdure[http]'", None
    )


def test_every_extra_is_known() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert set(machine.EXTRAS) == set(extras) - {"dev", "all"}
    for extra, (distribution, _) in machine.EXTRAS.items():
        assert any(one.startswith(distribution) for one in extras[extra])


# ----------------------------------------------------------------------------------- the place


@pytest.mark.parametrize(("kind", "level"), [("nfs4", "warn"), ("ext4", "ok"), ("9p", "warn")])
def test_a_file_system_behind_a_network_is_a_warning(
    tmp_path: Path, kind: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "1 0 0:1 / / rw,relatime - overlay overlay rw\n"
        f"2 1 0:2 / {tmp_path} rw shared:1 - {kind} host:/x rw\n"
        f"3 1 0:3 / {tmp_path}/other rw - tmpfs tmpfs rw\n",
        encoding="utf-8",
    )
    assert place.file_system(tmp_path / "deeper", mounts) == kind
    assert place.file_system(Path("/elsewhere"), mounts) == "overlay"
    assert place.file_system(tmp_path, tmp_path / "none") is None
    monkeypatch.setattr(place, "file_system", lambda folder: kind)
    found = {check.topic: check for check in place.place(tmp_path / "x.db")}
    assert found["file system"].level == level


@pytest.mark.parametrize(("free", "level"), [(5, "fail"), (500, "warn"), (5000, "ok")])
def test_little_room_on_the_disk_is_told(
    tmp_path: Path, free: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": free * place.MIB})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    found = {check.topic: check for check in place.place(tmp_path / "x.db")}
    assert found["disk"].level == level


@pytest.mark.usefixtures("used")
def test_what_cannot_be_written_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).endswith(".db"))
    assert doctor(code=1)["rights"].level == "fail"
    Path("perdure.db-workers").mkdir(exist_ok=True)
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).endswith("-workers"))
    assert doctor(code=1)["locks"].level == "fail"


@pytest.mark.usefixtures("used")
def test_a_long_log_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "LONG_LOG", -1)
    assert doctor()["log"].level == "warn"


# ----------------------------------------------------------------------------------- the contents


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_no_database_or_damaged_fails() -> None:
    Path("perdure.db").write_bytes(b"no database at all" * 1000)
    assert doctor(code=1)["store"].level == "fail"


@pytest.mark.usefixtures("used")
def test_damaged_pages_fail() -> None:
    with closing(sqlite3.connect("perdure.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'journal'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with Path("perdure.db").open("r+b") as file:
        file.seek((page - 1) * size + 100)
        file.write(b"\xa5" * (size - 200))
    integrity = doctor(code=1)["integrity"]
    assert integrity.level == "fail"
    assert "restore it from a backup" in (integrity.advice or "")


@pytest.mark.usefixtures("used")
def test_an_older_schema_another_mode_and_a_weaker_sync_are_warnings() -> None:
    change("PRAGMA journal_mode = DELETE")
    change("UPDATE meta SET value = '1' WHERE key = 'schema'")
    checks = doctor("--store", "sqlite:///perdure.db?sync=normal")
    assert {checks[topic].level for topic in ("schema", "journal mode", "sync")} == {"warn"}
    assert "perdure db migrate" in (checks["schema"].advice or "")
    change("UPDATE meta SET value = '99' WHERE key = 'schema'")
    assert "upgrade perdure" in doctor(code=1)["store"].text


@pytest.mark.usefixtures("used")
def test_a_large_file_is_read_whole_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.cli.doctor.contents.QUICK", 1)
    assert "--full reads it whole" in doctor()["integrity"].text
    assert doctor("--full")["integrity"].text == "every page is as it should be"


@pytest.mark.usefixtures("used")
def test_a_clock_behind_what_was_written_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    change("UPDATE run SET created = created + 3600000000")
    assert "a run was started 59 m" in doctor()["clock"].text
    monkeypatch.setattr("time.time_ns", lambda: 1000)
    assert doctor(code=1)["clock"].level == "fail"


@pytest.mark.usefixtures("used")
def test_stalled_overdue_and_crashing_runs_are_named() -> None:
    for name in ("due", "stuck", "killer"):
        perdure("start", "greeting.json", *NAMED, name)
    change("UPDATE run SET stalled = 'no step greet', ready_at = 1 << 62 WHERE id = 'stuck'")
    change("UPDATE run SET ready_at = 1 WHERE id = 'due'")
    change("UPDATE run SET crashes = 5, claimed_seq = 1 WHERE id = 'killer'")
    checks = doctor()
    assert checks["stalled"].text == "1 run cannot go on: greeting/stuck: no step greet"
    assert checks["stalled"].advice == (
        "perdure list --where status=stalled, perdure why greeting/stuck"
    )
    assert "nobody takes them: 1 of greeting for" in checks["overdue"].text
    assert "no worker is alive: perdure worker FILE APP" in (checks["overdue"].advice or "")
    assert checks["crashes"].text == "greeting/killer: its workers died 5 times in a row"
    assert {checks[topic].level for topic in ("stalled", "overdue", "crashes")} == {"warn"}


@pytest.mark.usefixtures("used")
def test_workers_that_are_alive_and_gone_are_told() -> None:
    async def main() -> None:
        store = SqliteStore("perdure.db")
        await store.open()
        await store.register(WorkerInfo("w1", "first", "here", 7))
        try:
            told = await asyncio.to_thread(doctor)
            assert told["workers"] == Told("ok", "1 alive: first (process 7 on here)", None)
        finally:
            await store.close()

    asyncio.run(main())
    gone = doctor()["workers"]
    assert gone.level == "warn"
    assert gone.text == "0 alive; 1 gone without a word"


@pytest.mark.usefixtures("used")
def test_it_changes_nothing() -> None:
    change("PRAGMA wal_checkpoint(TRUNCATE)")
    before = Path("perdure.db").read_bytes()
    doctor()
    assert Path("perdure.db").read_bytes() == before
