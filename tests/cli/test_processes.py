"""The command as people meet it: a process of its own, interrupted, killed, and given again."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.commands import SLOW, calls, perdure, start, wait_for_call, write

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.slow]

SLOW_RUN = ("run", "slow.json", "--app", "steps.py", "--input", '{"name": "Ann"}', "--id", "ann")
RESUME = ("run", "slow.json", "--id", "ann", "--app", "steps.py")


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out, err


@pytest.mark.chaos
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_process_prints_the_command_that_goes_on(
    number: signal.Signals, code: int
) -> None:
    write("slow.json", SLOW)
    process = start(*SLOW_RUN, "--grace", "0")
    wait_for_call("wait 1", process)
    process.send_signal(number)
    ending, out, err = ended(process)
    assert (ending, out) == (code, "")
    assert err.splitlines()[-1] == f"  perdure {' '.join(RESUME)}"
    Path("go").touch()
    code, out, _ = ended(start(*RESUME))
    assert (code, out) == (0, '{"said": "HELLO, ANN"}\n')
    assert calls() == ["greet 1", "wait 1", "wait 1", "shout 1"]


@pytest.mark.chaos
def test_steps_that_end_within_the_grace_are_recorded() -> None:
    write("slow.json", SLOW)
    process = start(*SLOW_RUN, "--grace", "60s")
    wait_for_call("wait 1", process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    for line in process.stderr:
        if "steps under way have 60 s to end" in line:
            break
    Path("go").touch()
    assert ended(process)[0] == 130
    assert ended(start(*RESUME))[0] == 0
    assert calls() == ["greet 1", "wait 1", "shout 1"]


@pytest.mark.chaos
def test_a_step_in_a_thread_that_does_not_end_keeps_no_process_alive() -> None:
    Path("steps.py").write_text(
        "import time\nfrom perdure import step\n@step\ndef wait(text: str) -> None:\n"
        "    open('calls.log', 'w').write('wait 1')\n    time.sleep(600)\n"
    )
    node = {"id": "wait", "type": "TASK", "spec": {"step": "wait", "input": {"text": "x"}}}
    write("stuck.json", {"name": "stuck", "nodes": [node], "edges": []})
    process = start("run", "stuck.json", "--app", "steps.py", "--grace", "0")
    wait_for_call("wait 1", process)
    process.send_signal(signal.SIGTERM)
    code, _, err = ended(process)
    assert code == 143
    assert "The run stays as it is" in err


@pytest.mark.chaos
def test_a_killed_process_is_followed_by_the_same_command() -> None:
    write("slow.json", SLOW)
    process = start(*SLOW_RUN)
    wait_for_call("wait 1", process)
    process.kill()
    process.communicate()
    Path("go").touch()
    code, out, err = ended(start(*SLOW_RUN))
    assert (code, out) == (0, '{"said": "HELLO, ANN"}\n')
    assert "slow/ann goes on from wait: 1 node is recorded, and not done again" in err
    assert calls() == ["greet 1", "wait 1", "wait 1", "shout 1"]
    assert "begun again 1×" in perdure("show", "slow/ann").stdout


@pytest.mark.chaos
def test_a_second_process_follows_the_first_or_says_who_has_the_file() -> None:
    write("slow.json", SLOW)
    first = start(*SLOW_RUN)
    wait_for_call("wait 1", first)
    second = start(*SLOW_RUN)
    assert second.stderr is not None
    line = second.stderr.readline()
    if "is in use by process" in line:  # a SQLite that cannot have two writers (WAL-reset bug)
        assert ended(second)[0] == 5
        Path("go").touch()
    else:
        assert "slow/ann is there already; waiting for whoever works on it" in line
        Path("go").touch()
        code, out, err = ended(second)
        assert (code, out) == (0, '{"said": "HELLO, ANN"}\n')
        assert "shout  completed (attempt 1" in err
    assert ended(first)[:2] == (0, '{"said": "HELLO, ANN"}\n')
    assert calls() == ["greet 1", "wait 1", "shout 1"]


def test_a_run_that_has_ended_is_looked_at_and_takes_up_no_other() -> None:
    write("slow.json", SLOW)
    Path("go").touch()
    assert ended(start(*SLOW_RUN))[0] == 0
    Path("go").unlink()
    Path("calls.log").unlink(missing_ok=True)
    left = start(*SLOW_RUN[:-1], "bob")
    wait_for_call("wait 1", left)
    left.kill()
    ended(left)
    before = calls()
    code, out, err = ended(start(*SLOW_RUN))
    assert (code, out) == (0, '{"said": "HELLO, ANN"}\n')
    assert "slow/ann has already completed: this is its recorded outcome" in err
    assert calls() == before


def test_result_waits_for_a_run_of_another_process() -> None:
    write("slow.json", SLOW)
    worker = start(*SLOW_RUN)
    wait_for_call("wait 1", worker)
    waiting = start("result", "slow/ann", "--wait")
    Path("go").touch()
    assert ended(waiting) == (0, '{"said": "HELLO, ANN"}\n', "")
    assert ended(worker)[0] == 0


def test_a_locked_database_is_a_clear_error_and_left_alone() -> None:
    perdure("start", "greeting.json", "--input", '{"name": "Ann"}', "--id", "ann")
    holder = sqlite3.connect("perdure.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        code, out, err = ended(start("run", "greeting.json", "--app", "steps.py"))
    finally:
        holder.close()
    assert (code, out) == (5, "")
    assert "is locked by another process" in err
    assert "greeting/ann" in perdure("list").stdout


def test_a_worker_that_could_not_write_its_last_rows_says_so_and_does_not_exit_with_0() -> None:
    words = ("worker", "slow.json", "steps.py", "--grace", "1s", "--json")
    perdure("start", write("slow.json", SLOW), "--input", '{"name": "Ann"}', "--id", "ann")
    worker = start(*words)
    wait_for_call("wait 1", worker)
    holder = sqlite3.connect("perdure.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        Path("go").touch()
        time.sleep(0.5)
        worker.terminate()
        code, out, err = ended(worker)
    finally:
        holder.close()
    assert code == 5
    assert "stopped, but the store did not take the last rows of slow/ann" in err
    *_, stopped, error = [json.loads(line) for line in out.splitlines()]
    assert stopped["unrecorded"] == ["slow/ann"]
    assert error["error"]["code"] == "store"
    assert ended(start("run", "slow.json", "--app", "steps.py", "--id", "ann"))[0] == 0


EACH = """
import asyncio
from pathlib import Path
from perdure import step

@step
async def wait(name: str) -> str:
    with open("calls.log", "a") as log:
        log.write(f"{name}\\n")
    while not Path(name).exists():
        await asyncio.sleep(0.01)
    return name
"""


def test_a_run_that_could_not_write_the_last_rows_of_others_does_not_exit_with_0() -> None:
    Path("steps.py").write_text(EACH)
    node = {"id": "wait", "type": "TASK", "spec": {"step": "wait", "input": "{{input.name}}"}}
    write("each.json", {"name": "each", "nodes": [node], "edges": []})
    perdure("start", "each.json", "--input", '{"name": "bob"}', "--id", "bob")
    words = ("each.json", "--app", "steps.py", "--id", "ann", "--input", '{"name": "ann"}')
    process = start("run", *words, "--grace", "1s")
    wait_for_call("bob", process)
    wait_for_call("ann", process)
    Path("ann").touch()
    assert process.stderr is not None
    next(line for line in process.stderr if "steps of other runs have" in line)
    holder = sqlite3.connect("perdure.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        Path("bob").touch()
        code, out, err = ended(process)
    finally:
        holder.close()
    assert (code, out) == (5, '{"wait": "ann"}\n')
    assert "perdure: stopped, but the store did not take the last rows of each/bob" in err


@pytest.mark.parametrize("text", [b"this is no database at all" * 100, b"SQLite format 3\0junk"])
def test_a_corrupt_database_is_a_clear_error_and_left_alone(text: bytes) -> None:
    Path("perdure.db").write_bytes(text)
    for words in (("run", "greeting.json", "--app", "steps.py"), ("list",)):
        assert "perdure.db" in perdure(*words, code=5).stderr
    assert Path("perdure.db").read_bytes() == text


def test_a_database_of_a_newer_perdure_is_a_clear_error_and_left_alone() -> None:
    perdure("start", "greeting.json", "--input", '{"name": "Ann"}', "--id", "ann")
    current = set_schema("999")
    for words in (("run", "greeting.json", "--app", "steps.py"), ("list",)):
        assert "upgrade perdure" in perdure(*words, code=5).stderr
    set_schema(current)
    assert "greeting/ann" in perdure("list").stdout


def set_schema(version: str) -> str:
    """Write another version into the database; the one that was there."""
    with closing(sqlite3.connect("perdure.db", isolation_level=None)) as db:
        (before,) = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema'", [version])
        return str(before)


def test_a_folder_that_is_not_there_is_named() -> None:
    said = perdure(
        "run", "greeting.json", "--app", "steps.py", "--store", "sqlite:///no/x.db", code=5
    )
    assert "no does not exist" in said.stderr


def test_help_imports_nothing_of_the_engine() -> None:
    """So it is quick; what a command needs is imported when it is called."""
    heavy = ["asyncio", "msgspec", "sqlite3", "aiohttp", "rich", "perdure.engine", "perdure.kernel"]
    code = f"import sys, perdure.cli.main; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_python_dash_m_is_the_same_command_and_the_version_is_told() -> None:
    code, out, _ = ended(start("--version"))
    assert code == 0
    assert out.startswith("perdure 0.")
    assert "Usage: perdure " in ended(start("--help"))[1]


def test_at_a_terminal_a_picture_is_drawn_and_the_cursor_never_goes() -> None:
    """A process that is killed while it draws cannot bring the cursor back."""
    pytest.importorskip("rich", reason="rich is not installed")
    pty = pytest.importorskip("pty", reason="no terminals on this system")
    theirs, ours = pty.openpty()
    words = ["run", "greeting.json", "--app", "steps.py", "--input", '{"name": "Ann"}']
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", *words],
        stderr=ours, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(ours)
    said = b""
    while piece := read(theirs):
        said += piece
    os.close(theirs)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out) == {"said": "HELLO, ANN"}
    assert "✓".encode() in said
    shown, drawn = said.find(b"\x1b[?25h"), said.find(b"running")
    assert shown < drawn
    assert b"\x1b[?25l" not in said[shown:]


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how a terminal says that the other side is gone
        return b""


def test_output_that_nobody_reads_any_more_ends_the_command_without_a_word() -> None:
    perdure("start", "greeting.json", "--input", '{"name": "Ann"}', "--id", "ann")
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "perdure", "show", "greeting/ann", "--history"]
    try:
        done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_interrupt_while_the_command_is_being_imported_ends_it_with_a_line() -> None:
    program = """
import sys
from importlib.abc import MetaPathFinder
from perdure.__main__ import main

class Interrupts(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "perdure.cli.why":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
main()
"""
    ending = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (ending.returncode, ending.stdout, ending.stderr) == (130, "", "perdure: interrupted\n")
