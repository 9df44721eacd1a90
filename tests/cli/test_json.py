"""`--json` on every command: stdout is JSON alone, also of errors, with keys that are written."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import click
import pytest

from perdure.cli.main import main
from tests.cli.commands import BAD, perdure, run, start, task, write
from tests.cli.test_reference import COMMANDS, SECTIONS

NAMED = ("--input", '{"name": "Ann"}', "--id")
LEAVES = {name: one for name, one in COMMANDS.items() if not isinstance(one, click.Group)}

#: How each command is called for its plainest answer, after a run has completed (greeting/ann),
#: one has failed (bad/b) and one goes on (greeting/on).
CALLS: dict[str, tuple[str, ...]] = {
    "run": ("greeting.json", "--app", "steps.py", *NAMED, "ann"),
    "start": ("greeting.json", *NAMED, "new"),
    "list": (),
    "show": ("greeting/ann", "--history"),
    "watch": ("greeting/ann",),
    "why": ("greeting/on",),
    "result": ("greeting/ann",),
    "signal": ("greeting/on", "approved", "1"),
    "cancel": ("greeting/on",),
    "pause": ("greeting/on",),
    "unpause": ("greeting/on",),
    "retry": ("bad/b",),
    "lint": ("greeting.json",),
    "publish": ("greeting.json",),
    "definitions": (),
    "steps": ("--app", "steps.py"),
    "db migrate": (),
    "db status": (),
    "db purge": (),
    "export": ("greeting/ann", "-o", "runs.jsonl"),
    "import": ("runs.jsonl", "--store", "sqlite:///other.db"),
    "doctor": (),
    "completion": ("bash",),
    "draw": ("greeting.json",),
    "rehearse": ("greeting.json", "--default", '"x"', *NAMED[:2]),
}
#: Those that are tried elsewhere, and where.
ELSEWHERE = {"demo": "tests/acceptance/test_demo.py", "worker": "below"}


@pytest.fixture
def runs(folder: Path) -> None:
    write("bad.json", BAD)
    run("greeting.json", *NAMED, "ann")
    run("bad.json", "--id", "b", code=1)
    perdure("start", "greeting.json", *NAMED, "on")
    perdure("export", "greeting/ann", "-o", "runs.jsonl")


def called(name: str, *words: str, code: int = 0) -> Any:
    """The one JSON value on stdout."""
    if name == "export" and code == 0:
        Path("runs.jsonl").unlink()
    return json.loads(perdure(*name.split(), *words, "--json", code=code).stdout)


def test_every_command_is_tried() -> None:
    assert set(CALLS) | set(ELSEWHERE) == set(LEAVES)


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_every_command_has_json(name: str) -> None:
    options = {word for one in LEAVES[name].params for word in one.opts}
    assert "--json" in options


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_answer_is_one_json_value_with_the_keys_that_are_written(name: str) -> None:
    answer = called(name, *CALLS[name])
    assert isinstance(answer, dict)
    section = SECTIONS[name]
    if (base := re.search(r"as for\s+`(\w+)`", section)) is not None:
        section += SECTIONS[base[1]] + SECTIONS["run"]
    assert [key for key in answer if f"`{key}`" not in section] == []


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_wrong_option_is_a_json_error(name: str) -> None:
    error = called(name, "--no-such-option", code=2)["error"]
    assert error["code"] == "usage"
    assert "--no-such-option" in error["message"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("show", "a/b"), 5, "store"),
        (("export", "a/b"), 5, "store"),
        (("run", "nowhere.json"), 2, "definition"),
        (("publish", "nowhere.json"), 2, "definition"),
        (("cancel",), 2, "usage"),
        (("import", "nowhere.jsonl"), 2, "usage"),
        (("steps", "--app", "nowhere.py"), 2, "usage"),
        (("list", "--where", "odd"), 2, "usage"),
        (("completion", "tcsh"), 2, "usage"),
    ],
)
def test_an_error_is_a_json_object_too(words: tuple[str, ...], code: int, error: str) -> None:
    said = json.loads(perdure(*words, "--json", code=code).stdout)["error"]
    assert said["code"] == error
    assert said["message"]


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_a_worker_tells_a_line_of_json_for_each_thing_that_happens() -> None:
    wait = {"id": "go", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "go", "timeout": "1h"}}
    noisy = {"name": "noisy", "nodes": [task("greet", "greet", {"name": "x"}), wait],
             "edges": [{"from": "greet", "to": "go"}]}  # fmt: skip
    write("noisy.json", noisy)
    perdure("start", "noisy.json", "--id", "n")
    process = start("worker", "noisy.json", "steps.py", "--json", "--quiet")
    assert process.stdout is not None
    lines = [json.loads(process.stdout.readline()) for _ in range(3)]
    perdure("signal", "noisy/n", "go")
    lines.append(json.loads(process.stdout.readline()))
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate()
    lines += [json.loads(line) for line in rest.splitlines()]
    assert all(line.pop("time").endswith("Z") for line in lines)
    told = {line.pop("event"): line for line in lines}
    assert sorted(told) == ["begins", "ended", "serves", "stopped", "waits"]
    assert told["serves"] == {"workflows": ["noisy"], "store": "sqlite:///perdure.db"}
    assert told["begins"] == {"workflow": "noisy", "id": "n"}
    assert (told["waits"]["node"], told["waits"]["signal"]) == ("go", "go")
    assert (told["ended"]["status"], told["ended"]["failure"]) == ("completed", None)


def test_help_is_short_and_names_every_command_once() -> None:
    said = perdure("--help").stdout
    listed = re.findall(r"^  ([a-z]+)  +\S", said, re.MULTILINE)
    assert sorted(listed) == sorted(main.commands)
    assert len(said.splitlines()) < 60
