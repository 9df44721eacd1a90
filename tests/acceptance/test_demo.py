"""`perdure demo` as a new user runs it: it kills, goes on, accounts, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="HTTP nodes need the extra `http`")
pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.timeout(300)]


def demo(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "perdure", "demo", *words],
        env={**os.environ, "TMPDIR": str(tmp_path), "PERDURE_STORE": "sqlite:///not-here/x.db"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, out + err
    document: dict[str, Any] = json.loads(out)
    return document


def test_whatever_the_moments_of_the_kills_everything_promised_holds(tmp_path: Path) -> None:
    """They are drawn anew each time; a failure prints the seed that draws them again."""
    document = told(demo(tmp_path, "--json"))
    assert document["held"], document
    assert all(check["held"] for check in document["checks"])
    assert [kill["worker"] for kill in document["kills"]] != []
    waiting, paying, _ = document["kills"]
    assert waiting["under_way"] == ["approval"]
    assert waiting["taken_by"] not in (None, waiting["worker"])
    assert paying["worker"] == waiting["taken_by"]
    did = {node["node"]: node["did"] for node in document["nodes"] if node["did"]}
    assert did == {"reserve": 1, "charge": 1, "ship": 1, "notify": 1}
    rollback = document["rollback"]
    assert rollback["kill"]["taken_by"] not in (None, rollback["kill"]["worker"])
    steps = rollback["steps"]
    assert [(s["step"], s["booked"], s["did"]) for s in steps] == [
        ("car", 1, 1),
        ("hotel", 1, 1),
        ("flight", 1, 1),
    ]
    assert document["folder"] is None
    assert list(tmp_path.iterdir()) == []


def test_the_story_is_told_on_stdout_in_plain_text_and_its_files_are_kept(tmp_path: Path) -> None:
    process = demo(tmp_path, "--keep", "--seed", "7")
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, out + err
    assert err == ""
    assert "\x1b" not in out
    assert "press Enter" not in out
    told = " ".join(out.split())
    for part in (
        "1/5 An order comes in",
        "$ perdure worker order.json steps.py --name one &",
        "$ perdure start order.json --id 1002 --input",
        "attempt 1 failed: the shop answered 503; attempt 2 in 1.00 s",
        "2/5 It waits for a person, and its worker is killed",
        "$ perdure why order/1002",
        "-> perdure signal order/1002 approved",
        ", while the order waits",
        "has taken the order over",
        "3/5 It is approved, and its worker is killed in the middle of the payment",
        "got signal approved",
        ", while the shop charges the card",
        "4/5 It is shipped, and once more a worker is killed at any moment",
        "5/5 A trip cannot be paid, and its worker is killed while it undoes the bookings",
        "$ perdure start trip.py --id 7 --input",
        ", in the middle of undoing",
        "has taken the trip over",
        "pay failed: ValueError: the card is declined",
        "The account: what the journal says, and what others saw",
        "ok The card was charged once: 669.00.",
        "ok The parcel was shipped once.",
        "ok All that was booked was canceled, once each, the last booking first.",
        "show order/1002 --history",
    ):
        assert part in told
    assert [line for line in out.splitlines() if len(line) > 100 and "perdure-demo-" not in line
            ] == []  # fmt: skip
    (folder,) = tmp_path.glob("perdure-demo-*")
    look = out.splitlines()[-1].strip()
    shown = subprocess.run(look, shell=True, capture_output=True, text=True, check=True)
    assert "completed" in shown.stdout
    assert {
        "order.json",
        "steps.py",
        "trip.py",
        "agencies.log",
        "perdure.db",
        "shop.log",
        "warehouse.log",
        "one.log",
    } <= {file.name for file in folder.iterdir()}


def test_a_person_at_a_terminal_is_asked_to_approve(tmp_path: Path) -> None:
    """Until that is heard: how the story goes on is told by the tests above."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "perdure", "demo"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen(
        words, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path
    ) as process:
        try:
            os.close(theirs)
            assert "Approve the order?" in read(ours, "press Enter, or wait")
            os.write(ours, b"\n")
            assert """approved '{"by": "you"}'""" in read(ours, "got signal approved")
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()
            os.close(ours)


def read(terminal: int, end: str) -> str:
    """What is shown, up to and with these words, wherever the lines break."""
    shown = ""
    while end not in " ".join(shown.split()):
        assert select.select([terminal], [], [], 120)[0], shown
        try:
            shown += os.read(terminal, 4096).decode()
        except OSError:  # whoever wrote has ended
            raise AssertionError(f"{end!r} was not shown: {shown}") from None
    return shown


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGINT, "$ perdure why"),
        (signal.SIGTERM, "KILLED"),
        (signal.SIGHUP, "$ perdure worker"),
        (signal.SIGQUIT, "2/5"),
        (signal.SIGKILL, "KILLED"),
    ],
)
def test_no_process_is_left_when_the_demo_is_ended(
    tmp_path: Path, number: signal.Signals, words: str
) -> None:
    if shutil.which("ps") is None:
        pytest.skip("there is no ps to look for processes with")
    process = demo(tmp_path)
    assert process.stdout is not None
    assert any(words in line for line in process.stdout)
    begun = children(process.pid)
    for part in ("demo.shop", "demo.tied worker"):
        assert any(part in words for words in begun.values())
    process.send_signal(number)
    process.communicate(timeout=60)
    if number is not signal.SIGKILL:
        assert process.returncode == 130
        assert [pid for pid in begun if alive(pid)] == []
        assert list(tmp_path.iterdir()) == []
    for pid in begun:  # nobody could end them: they end by themselves
        wait_for_end(pid)


def children(parent: int) -> dict[int, str]:
    rows = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = [row.split(maxsplit=2) for row in rows]
    return {int(pid): " ".join(rest) for pid, above, *rest in found if int(above) == parent}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_end(pid: int) -> None:
    until = time.monotonic() + 60
    while alive(pid):
        assert time.monotonic() < until, f"process {pid} goes on and on"
        time.sleep(0.05)
