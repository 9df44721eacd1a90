"""The approval example in all its ways: a worker, a run that waits, a signal from outside. What
its page tells to type is tried in test_pages."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure.stores.sqlite.driver import has_wal_reset_bug
from tests.tidy.tree import ROOT

EXAMPLE = ROOT / "examples" / "approval"
ORDER = {"order": "1001", "items": ["chair", "desk"], "total": 900}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(has_wal_reset_bug(), reason="this SQLite lets one process in at a time"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in ("approval.yaml", "steps.py"):
        shutil.copy(EXAMPLE / file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERDURE_STORE", raising=False)
    return tmp_path


@contextmanager
def worker() -> Iterator[subprocess.Popen[str]]:
    """The worker of the page. It is ended as services are, and must end well."""
    words = [sys.executable, "-m", "perdure", "worker", "approval.yaml", "steps.py"]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            ready = "serves approval on sqlite:///perdure.db"
            assert any(ready in line for line in process.stderr), process.wait(60)
            yield process
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
            assert "Traceback" not in err
        finally:
            process.kill()


def perdure(*words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "perdure", *words], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout


def start(order: dict[str, Any] = ORDER) -> None:
    perdure("start", "approval", "--id", "1001", "--input", json.dumps(order))


def waits() -> list[dict[str, Any]]:
    """What the run waits for, once it has come to the review."""
    until = time.monotonic() + 60
    while True:
        found = json.loads(perdure("why", "approval/1001", "--json"))["waits_for"]
        if any(cause["node"] == "review" for cause in found):
            return list(found)
        assert time.monotonic() < until, found
        time.sleep(0.05)


def warehouse() -> list[str]:
    lines = Path("warehouse.log").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["step"] for line in lines]


@pytest.mark.usefixtures("folder")
def test_an_approved_order_is_shipped() -> None:
    with worker():
        start()
        (cause,) = waits()
        assert cause["advice"] == "perdure signal approval/1001 reviewed"
        perdure("signal", "approval/1001", "reviewed", '{"approved": true, "by": "ann"}')
        output = json.loads(perdure("result", "approval/1001", "--wait"))
    assert output == {"order": "1001", "tracking": "TRACK-1001-2", "reviewed_by": "ann"}
    assert warehouse() == ["reserve", "ship"]


@pytest.mark.usefixtures("folder")
def test_a_signal_that_comes_while_no_worker_is_there_is_heard_by_the_next_one() -> None:
    with worker():
        start()
        waits()
    perdure("signal", "approval/1001", "reviewed", '{"approved": false, "by": "b", "reason": "no"}')
    with worker():
        output = json.loads(perdure("result", "approval/1001", "--wait"))
    assert output == {"order": "1001", "tracking": None, "reviewed_by": "b"}
    assert warehouse() == ["reserve", "release"]


@pytest.mark.usefixtures("folder")
def test_small_orders_wait_for_nobody() -> None:
    with worker():
        start({**ORDER, "total": 20})
        output = json.loads(perdure("result", "approval/1001", "--wait"))
    assert output == {"order": "1001", "tracking": "TRACK-1001-2", "reviewed_by": None}


def test_an_order_that_nobody_reviews_fails_and_waits_again_when_retried(folder: Path) -> None:
    file = folder / "approval.yaml"
    text = file.read_text(encoding="utf-8")
    assert "timeout: 3d" in text
    file.write_text(text.replace("timeout: 3d", "timeout: 0.2s"), encoding="utf-8")
    with worker():
        start()
        perdure("result", "approval/1001", "--wait", code=1)
    file.write_text(text, encoding="utf-8")
    with worker():
        perdure("retry", "approval/1001")
        waits()
        perdure("signal", "approval/1001", "reviewed", '{"approved": true, "by": "ann"}')
        perdure("result", "approval/1001", "--wait")
    assert warehouse() == ["reserve", "ship"]
