"""Calling the command line from tests, in this process or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from perdure.cli.main import main


@contextmanager
def forgetting(folder: Path) -> Iterator[None]:
    """What is imported from the folder meanwhile is forgotten at the end."""
    path, modules = list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(str(folder)):
                del sys.modules[name]


STEPS = '''
"""Steps for tests. Every call leaves a line in calls.log."""

import asyncio
from pathlib import Path

from perdure import Failure, Retry, current_step, step


def called(name):
    with open("calls.log", "a") as log:
        log.write(f"{name} {current_step().attempt}\\n")


@step
def greet(name: str) -> str:
    called("greet")
    print(f"hello, {name}, on stdout")
    return f"hello, {name}"


@step
def shout(text: str) -> str:
    called("shout")
    return text.upper()


@step
async def wait(text: str) -> str:
    """Ends when a file `go` is there."""
    called("wait")
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return text


@step(retry=Retry(2, initial=0.01))
def refuse(text: str) -> str:
    called("refuse")
    raise Failure("no luck today", kind="unlucky")
'''


def task(node: str, step: str, input: Any) -> dict[str, Any]:
    return {"id": node, "type": "TASK", "spec": {"step": step, "input": input}}


def chain(name: str, *nodes: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """A document whose nodes follow one another."""
    ids = [node["id"] for node in nodes]
    edges = [{"from": a, "to": b} for a, b in pairwise(ids)]
    return {"name": name, "nodes": list(nodes), "edges": edges, **rest}


GREETING = chain(
    "greeting",
    task("greet", "greet", {"name": "{{input.name}}"}),
    task("shout", "shout", {"text": "{{tasks.greet.output}}"}),
    output={"said": "{{tasks.shout.output}}"},
)
#: Its middle node ends when the file `go` is there.
SLOW = chain(
    "slow",
    task("greet", "greet", {"name": "{{input.name}}"}),
    task("wait", "wait", {"text": "{{tasks.greet.output}}"}),
    task("shout", "shout", {"text": "{{tasks.wait.output}}"}),
    output={"said": "{{tasks.shout.output}}"},
)
BAD = chain("bad", task("greet", "greet", {"name": "x"}), task("refuse", "refuse", {"text": "x"}))


def write(name: str, document: Any) -> str:
    Path(name).write_text(json.dumps(document, indent=2), encoding="utf-8")
    return name


def calls() -> list[str]:
    """What the steps were called, in order: `greet 1` is attempt 1 of greet."""
    log = Path("calls.log")
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def perdure(*words: str, input: str | None = None, code: int = 0) -> Result:
    """Call the command here; it must end with this code and never with a traceback."""
    result = CliRunner().invoke(main, words, input=input)
    assert result.exit_code == code, (result.exit_code, result.output)
    assert "Traceback" not in result.output
    return result


def run(file: str, *words: str, code: int = 0) -> Result:
    """`perdure run FILE --app steps.py …`."""
    return perdure("run", file, "--app", "steps.py", *words, code=code)


#: The processes of the test that runs now.
STARTED: list[subprocess.Popen[str]] = []


def start(*words: str) -> subprocess.Popen[str]:
    """The command in a process of its own, which does not outlive its test."""
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    STARTED.append(process)
    return process


def end_processes() -> None:
    """Kill what is still there of the processes of a test."""
    while STARTED:
        with STARTED.pop() as process:
            process.kill()


def wait_for_call(call: str, process: subprocess.Popen[str], seconds: float = 60) -> None:
    """Until a step has been called. Gives up, loudly, when the process has ended before."""
    until = time.monotonic() + seconds
    while call not in calls():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, f"{call} did not come; there are {calls()}"
        time.sleep(0.01)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}
