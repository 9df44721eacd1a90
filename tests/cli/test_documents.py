"""Documents in YAML, and inputs that a document's schema refuses, at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import perdure, run

pytestmark = pytest.mark.usefixtures("folder")

GREETING = """\
name: greeting
input:
  type: object
  required: [name]
  properties:
    name: {type: string}
nodes:
  - id: greet
    type: TASK
    spec: {step: greet, input: {name: "{{input.name}}"}}
output: {said: "{{tasks.greet.output}}"}
"""


def write(text: str) -> None:
    Path("greeting.yaml").write_text(text, encoding="utf-8")


def test_a_yaml_file_is_run_like_any_other() -> None:
    write(GREETING)
    result = run("greeting.yaml", "--input", '{"name": "ann"}', "--id", "1", "--json")
    assert json.loads(result.stdout)["output"]["said"]
    assert (
        "greeting/2" in perdure("start", "greeting.yaml", "-i", '{"name": "b"}', "--id", "2").stdout
    )


def test_lint_reads_yaml_from_a_file_and_from_standard_input() -> None:
    write(GREETING)
    assert perdure("lint", "greeting.yaml").stdout == "greeting.yaml: ok\n"
    assert perdure("lint", "-", input=GREETING).stdout == "-: ok\n"
    write(GREETING.replace('"{{input.name}}"', "{{input.name}}"))
    said = perdure("lint", "greeting.yaml", code=2).stdout
    assert said.startswith("greeting.yaml:10:39: error: a template is not in quotes")


@pytest.mark.parametrize("command", ["start", "run"])
def test_an_input_that_does_not_fit_is_told_and_starts_nothing(command: str) -> None:
    write(GREETING)
    options = ["--app", "steps.py"] if command == "run" else []
    result = perdure(
        command, "greeting.yaml", *options, "--input", '{"name": 5}', "--id", "1", code=2
    )
    assert (
        "the input of greeting does not fit its schema: "
        "input.name must be text, and is a whole number"
    ) in result.stderr
    if command == "start":
        assert perdure("list", "--json").stdout.count("greeting") == 0


def test_a_file_with_a_mistake_is_told_by_file_line_and_column() -> None:
    write(GREETING.replace("step: greet", "stp: greet"))
    result = perdure("start", "greeting.yaml", "--id", "1", code=2)
    assert "greeting.yaml:10:12: /nodes/0/spec/stp (node greet)" in result.stderr
