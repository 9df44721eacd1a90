"""What pages tell a newcomer to type is typed, in an empty folder, and prints what they show."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from perdure.stores.sqlite.driver import has_wal_reset_bug
from tests.docs import sessions
from tests.tidy.tree import ROOT, files

QUICKSTART = ROOT / "examples" / "quickstart"
START = [ROOT / "README.md", ROOT / "docs" / "tutorial" / "first-workflow.md"]
#: Pages to follow, and the folder whose files are there already.
TRIED = {
    "docs/tutorial/signals-and-retries.md": None,
    "docs/explanation/which-door.md": None,
    "docs/howto/backup.md": "quickstart",
    "docs/howto/retries.md": None,
    "docs/howto/versions.md": "quickstart",
    "docs/howto/watch.md": None,
    "docs/tutorial/durable-python.md": None,
    "docs/tutorial/first-saga.md": None,
    "docs/howto/code-versions.md": None,
    "examples/agent/README.md": "agent",
    "examples/approval/README.md": "approval",
    "examples/checkout/README.md": "checkout",
    "examples/fan-out/README.md": "fan-out",
    "examples/onboarding/README.md": "onboarding",
    "examples/order-parcels/README.md": "order-parcels",
    "examples/poll-until/README.md": "poll-until",
    "examples/polling/README.md": "polling",
    "examples/thumbnails/README.md": "thumbnails",
    "examples/webhook/README.md": "webhook",
}
#: Those whose commands are followed elsewhere, and where.
ELSEWHERE = {
    "docs/howto/stores.md": "tests/acceptance/test_store_authors.py",
    "examples/encryption/README.md": "tests/acceptance/test_encryption.py",
}
several = pytest.mark.skipif(
    has_wal_reset_bug(), reason="this SQLite lets one process in at a time"
)


@pytest.mark.parametrize("page", START, ids=lambda page: page.name)
@pytest.mark.parametrize(("language", "file"), [("python", "steps.py"), ("yaml", "hello.yaml")])
def test_the_files_of_the_page_are_those_of_the_example(
    page: Path, language: str, file: str
) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert (QUICKSTART / file).read_text(encoding="utf-8") in blocks


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/durable-python.md"])
def test_the_function_of_the_page_is_that_of_the_example(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert (ROOT / "examples" / "hello" / "hello.py").read_text(encoding="utf-8") in blocks


@pytest.mark.parametrize(
    "page", [*START, QUICKSTART / "README.md"], ids=lambda page: page.parent.name
)
def test_the_command_of_the_page_is_the_one_that_is_tested(page: Path) -> None:
    command = """perdure run hello.yaml --app steps.py --id ann --input '{"name": "Ann"}'"""
    assert command in page.read_text(encoding="utf-8")


def test_every_page_with_commands_and_what_they_print_is_followed() -> None:
    pages = [p for p in files() if p.suffix == ".md" and "tests" not in p.relative_to(ROOT).parts]
    shown = [p for p in pages if "\n```console\n" in p.read_text(encoding="utf-8")]
    followed = sorted([*TRIED, *ELSEWHERE])
    assert followed == sorted(p.relative_to(ROOT).as_posix() for p in shown)
    for page, where in ELSEWHERE.items():
        assert f'"{Path(page).name}"' in (ROOT / where).read_text(encoding="utf-8")


@several
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", TRIED)
def test_who_follows_the_page_sees_what_it_shows(page: str, tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="documents in YAML need the extra `yaml`")
    pytest.importorskip("aiohttp", reason="HTTP nodes need the extra `http`")
    if "backup" in page and shutil.which("sqlite3") is None:
        pytest.skip("there is no sqlite3 tool to copy with")
    folder = TRIED[page]
    if folder is not None:
        shutil.copytree(ROOT / "examples" / folder, tmp_path, dirs_exist_ok=True)
    steps = sessions.of(ROOT / page)
    assert any(isinstance(step, sessions.Command) for step in steps)
    running: list[subprocess.Popen[str]] = []
    try:
        code = 0
        for step in steps:
            if isinstance(step, sessions.File):
                (tmp_path / step.name).write_text(step.text, encoding="utf-8")
            elif step.kills is not None:
                os.killpg(running[step.kills - 1].pid, signal.SIGKILL)
                running[step.kills - 1].wait()
            elif step.stays:
                running.append(started(step, tmp_path))
            else:
                code = tried(step, tmp_path, code)
    finally:
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@cache
def free_port() -> str:
    """For pages whose servers go by it: somebody else may be following the same page here."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def environment() -> dict[str, str]:
    """As of somebody who has activated the environment."""
    bin = Path(sys.executable).parent
    path = f"{bin}{os.pathsep}{os.environ['PATH']}"
    found = {**os.environ, "PATH": path, "COLUMNS": "100", "PORT": free_port()}
    return {k: v for k, v in found.items() if k not in ("PERDURE_STORE", "PERDURE_DEBUG")}


def started(step: sessions.Command, folder: Path) -> subprocess.Popen[str]:
    """A command that is left running; what it shows first is waited for."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {step.line.removesuffix('&')}"],
        cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    for shown in step.shown:
        printed = process.stdout.readline()
        assert sessions.settled(printed) == sessions.settled(shown), step.line
    return process


def tried(step: sessions.Command, folder: Path, before: int) -> int:
    """Do as typed, compare what it prints, and give its exit code."""
    until = time.monotonic() + 60
    while True:
        done = subprocess.run(
            ["bash", "-c", step.line.replace("$?", str(before))], cwd=folder, env=environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        differs = sessions.differs(step.shown, done.stdout.splitlines())
        if not differs or not step.looks or time.monotonic() > until:
            break
    assert differs == "", f"$ {step.line}\n{differs}"
    assert "Traceback" not in done.stdout
    return done.returncode
