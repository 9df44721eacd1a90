"""Programs that are told to stop while a workflow runs in them: what is under way ends within the
grace period, nothing is said but by Python itself, and the next one goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # steps take their time

HEAD = """\
import asyncio, signal, sys, time
from perdure import Context, Engine, blocking, step, workflow

@step
async def waits(n: int) -> int:
    print("begin", n, flush=True)
    await asyncio.sleep(0.4)
    print("end", n, flush=True)
    return n

@step
def blocks(n: int) -> int:
    print("begin", n, flush=True)
    time.sleep(0.4)
    print("end", n, flush=True)
    return n

@workflow(max_duration="1h")
async def adds(ctx: Context, kind: str) -> int:
    return sum([await (waits if kind == "async" else blocks)(n) for n in range(3)])

ARGUMENTS = dict(id="1", if_exists="join")
STORE = "sqlite:///runs.db?sync=normal&unsafe=1"
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever who began us made of it
"""
PROGRAMS = {
    "engine": """\
        async def main() -> None:
            async with Engine(STORE, [adds], grace=20) as engine:
                run = await engine.start(adds, sys.argv[1], **ARGUMENTS)
                print("result", await run.result(), flush=True)
        asyncio.run(main())
        """,
    "blocking": """\
        with blocking.Engine(STORE, [adds], grace=20) as engine:
            run = engine.start(adds, sys.argv[1], **ARGUMENTS)
            print("result", run.result(), flush=True)
        """,
    "left open": """\
        engine = blocking.Engine(STORE, [adds], grace=20).__enter__()
        run = engine.start(adds, sys.argv[1], **ARGUMENTS)
        print("result", run.result(), flush=True)
        """,
}
#: SIGTERM means nothing to a library: a program that wants to end gently says so.
GENTLY = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
GENTLY_ASYNC = """\
        async def main() -> None:
            asyncio.get_running_loop().add_signal_handler(
                signal.SIGTERM, asyncio.current_task().cancel)
            async with Engine(STORE, [adds], grace=20) as engine:
                run = await engine.start(adds, sys.argv[1], **ARGUMENTS)
                print("result", await run.result(), flush=True)
        try:
            asyncio.run(main())
        except asyncio.CancelledError:
            sys.exit(9)
        """


def started(folder: Path, body: str, kind: str) -> subprocess.Popen[str]:
    path = folder / "program.py"
    path.write_text(HEAD + textwrap.dedent(body), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-u", str(path), kind],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )


def told(
    program: subprocess.Popen[str], *signals: signal.Signals, after: float = 0.1
) -> tuple[list[str], str]:
    """Send these once the first step runs and the program waits for the result, or so many seconds
    later; what it said, on both streams, until its end."""
    assert program.stdout is not None
    first = program.stdout.readline()
    assert first == "begin 0\n", first + (program.stderr.read() if program.stderr else "")
    time.sleep(after)
    for number in signals:
        program.send_signal(number)
        time.sleep(0.1)
    out, err = program.communicate(timeout=60)
    return [first.strip(), *out.splitlines()], err


def goes_on(folder: Path, body: str, kind: str, done: list[str]) -> None:
    """The next program does what was not done, and nothing else."""
    begun = [line for line in done if line.startswith("end")]
    out, err = started(folder, body, kind).communicate(timeout=60)
    left = [f"{word} {n}" for n in range(len(begun), 3) for word in ("begin", "end")]
    assert out.splitlines() == [*left, "result 3"]
    assert err == ""


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_after_one_interrupt_what_is_under_way_ends_and_is_recorded(
    tmp_path: Path, name: str, kind: str
) -> None:
    # scenarios 39, 117, 118
    program = started(tmp_path, PROGRAMS[name], kind)
    done, err = told(program, signal.SIGINT)
    assert program.returncode == -signal.SIGINT, (done, err)
    begun = sum(line.startswith("begin") for line in done)
    assert done == [f"{word} {n}" for n in range(begun) for word in ("begin", "end")]
    assert_only_python_speaks(err)
    goes_on(tmp_path, PROGRAMS[name], kind, done)


@pytest.mark.parametrize("name", ["engine", "blocking"])
def test_after_two_interrupts_nothing_is_waited_for_and_nothing_is_lost(
    tmp_path: Path, name: str
) -> None:
    program = started(tmp_path, PROGRAMS[name], "async")
    done, err = told(program, signal.SIGINT, signal.SIGINT)
    assert program.returncode == -signal.SIGINT, (done, err)
    assert_only_python_speaks(err)
    goes_on(tmp_path, PROGRAMS[name], "async", done)


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize("body", [GENTLY_ASYNC, GENTLY + textwrap.dedent(PROGRAMS["blocking"])])
def test_a_program_that_ends_gently_when_it_is_terminated_drains(
    tmp_path: Path, body: str, kind: str
) -> None:
    program = started(tmp_path, body, kind)
    done, err = told(program, signal.SIGTERM)
    assert (program.returncode, err) == (9, "")
    assert done[-1].startswith("end")
    goes_on(tmp_path, body, kind, done)


@pytest.mark.parametrize("name", ["engine", "blocking"])
def test_one_that_does_not_is_dead_at_once_and_the_next_one_goes_on(
    tmp_path: Path, name: str
) -> None:
    program = started(tmp_path, PROGRAMS[name], "async")
    done, err = told(program, signal.SIGTERM, after=0)
    assert (program.returncode, done, err) == (-signal.SIGTERM, ["begin 0"], "")
    goes_on(tmp_path, PROGRAMS[name], "async", done)


def assert_only_python_speaks(err: str) -> None:
    """Nothing but how Python tells of an interrupt."""
    assert err.startswith("Traceback (most recent call last):\n"), err
    assert err.endswith("\nKeyboardInterrupt\n"), err
    said = [line for line in err.splitlines() if line and not line.startswith(" ")]
    allowed = ("Traceback (most", "KeyboardInterrupt", "During handling", "asyncio.exceptions.Canc")
    assert [line for line in said if not line.startswith(allowed)] == []
