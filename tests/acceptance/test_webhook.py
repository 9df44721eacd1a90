"""Deliveries of a webhook start one run each, also when the endpoint is killed around them."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.test_examples import copied, finished, running, several

pytestmark = [pytest.mark.slow, pytest.mark.chaos, several]


@contextmanager
def endpoint(folder: Path) -> Iterator[str]:
    """The endpoint at work, on a port that is free; killed on leaving."""
    with running("server.py", "--port", "0", folder=folder, module="") as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def deliver(folder: Path, url: str, *words: str) -> str:
    with delivering(folder, url, *words) as process:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return out.strip()


def delivering(folder: Path, url: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "deliver.py", *words, "--url", url], cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def log(folder: Path) -> list[str]:
    file = folder / "services.log"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def did(folder: Path) -> list[str]:
    return [line.split(None, 1)[1] for line in log(folder) if line.startswith("did")]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def runs(folder: Path) -> str:
    return finished("list", folder=folder)[0]


def test_a_delivery_that_comes_many_times_at_once_starts_one_run(tmp_path: Path) -> None:
    copied("webhook", tmp_path)
    with endpoint(tmp_path) as url:
        words = ("d-1", "ann", "ann@example.com")
        senders = [delivering(tmp_path, url, *words) for _ in range(4)]
        answers = [sender.communicate(timeout=60)[0] for sender in senders]
        finished("result", "onboarding/d-1", "--wait", folder=tmp_path)
        assert deliver(tmp_path, url, *words) == "202 onboarding/d-1 is recorded"
    assert answers == ["202 onboarding/d-1 is recorded\n"] * 4
    assert did(tmp_path) == [
        "open the account (ann)", "make the workspace (ann)",
        "welcome them to workspace-ann (ann)",
    ]  # fmt: skip
    assert runs(tmp_path).count("onboarding/") == 1


def test_what_was_taken_is_done_although_the_endpoint_died_and_the_sender_asks_again(
    tmp_path: Path,
) -> None:
    copied("webhook", tmp_path)
    with endpoint(tmp_path) as url:
        deliver(tmp_path, url, "d-1", "ann", "ann@example.com")
        until(lambda: "asked to make the workspace (ann)" in log(tmp_path))
    assert did(tmp_path) == ["open the account (ann)"]
    with endpoint(tmp_path) as url:
        deliver(tmp_path, url, "d-1", "ann", "ann@example.com")
        finished("result", "onboarding/d-1", "--wait", folder=tmp_path)
    assert len(did(tmp_path)) == len(set(did(tmp_path))) == 3
    assert log(tmp_path).count("asked to make the workspace (ann)") == 2
    assert runs(tmp_path).count("onboarding/") == 1


def test_a_rollback_that_is_killed_goes_on_and_takes_back_each_thing_once(tmp_path: Path) -> None:
    copied("webhook", tmp_path)
    with endpoint(tmp_path) as url:
        deliver(tmp_path, url, "d-1", "bob", "bob@nowhere.invalid")
        until(lambda: "asked to remove the workspace (bob)" in log(tmp_path))
    with endpoint(tmp_path):
        _, err = finished("result", "onboarding/d-1", "--wait", folder=tmp_path, code=1)
    assert "bounced: bob@nowhere.invalid takes no mail" in err
    assert did(tmp_path) == [
        "open the account (bob)", "make the workspace (bob)", "remove the workspace (bob)",
        "close the account (bob)",
    ]  # fmt: skip


def post(url: str, body: bytes, **headers: str) -> int:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    try:
        connection.request("POST", "/", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_what_is_no_delivery_is_refused_and_starts_nothing(tmp_path: Path) -> None:
    copied("webhook", tmp_path)
    with endpoint(tmp_path) as url:
        assert post(url, b"{}") == 401
        assert post(url, b"x", Signature="ä") == 401
        assert post(url, b"", **{"Content-Length": "many"}) == 413
        assert post(url, b"", **{"Content-Length": str(1 << 20)}) == 413
        assert deliver(tmp_path, url, "", "ann", "ann@example.com").startswith("400 not an event")
        assert deliver(tmp_path, url, "x" * 300, "a", "b").startswith("400 not an event")
    assert "onboarding/" not in runs(tmp_path)
