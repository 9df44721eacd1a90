"""Errors of the library in words, versions, and patience with locks."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.model.errors import StoreError
from perdure.stores.sqlite import driver
from perdure.stores.sqlite.driver import explain, has_wal_reset_bug, patiently


def error(code: int) -> Exception:
    made = driver.sqlite3.OperationalError("said by the library")
    made.sqlite_errorcode = code
    return made


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (5, "is locked by another process"),
        (5 | (2 << 8), "is locked by another process"),
        (6, "is locked by another connection"),
        (8, "cannot be written"),
        (10 | (3 << 8), "could not be read or written"),
        (11, "is damaged: restore it from a backup"),
        (13, "the disk is full"),
        (14, "check that the folder exists"),
        (26, "is not a SQLite database"),
        (1, "failed"),
    ],
)
def test_every_trouble_is_a_store_error_with_file_advice_and_cause(code: int, said: str) -> None:
    explained = explain(error(code), Path("runs.db"))
    assert isinstance(explained, StoreError)
    assert said in str(explained)
    assert str(explained).startswith("database runs.db ")
    assert "said by the library" in str(explained)


def test_a_store_error_is_explained_already() -> None:
    made = StoreError("said")
    assert explain(made, Path("runs.db")) is made


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
    ],
)
def test_versions_with_the_wal_reset_bug_are_known(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], affected: bool
) -> None:
    monkeypatch.setattr(driver, "version", lambda: version)
    assert has_wal_reset_bug() is affected


def test_a_library_that_is_too_old_is_named_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver, "version", lambda: (3, 36, 0))
    with pytest.raises(StoreError, match=r"3\.36\.0 is too old.*pip install"):
        driver.check_version()


def test_a_lock_is_tried_again_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    # scenario 121
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(driver.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(driver.time, "sleep", sleep)
    tries = []

    def third_time() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise error(5)
        return "done"

    assert patiently(third_time, 5.0) == "done"
    assert slept == [0.001, 0.002]
    with pytest.raises(driver.Error):
        patiently(lambda: (_ for _ in ()).throw(error(5)), 0.5)
    assert sum(slept) <= 0.6
    assert max(slept) <= 0.05


def test_only_locks_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver.time, "sleep", lambda seconds: pytest.fail("waited"))
    with pytest.raises(driver.Error):
        patiently(lambda: (_ for _ in ()).throw(error(11)), 5.0)
