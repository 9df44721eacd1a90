"""`perdure lint`: findings with their places, exit codes, the schema."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tests.cli.commands import GREETING, perdure, write

pytestmark = pytest.mark.usefixtures("folder")


def write_doubtful() -> None:
    """Loads, but its SWITCH may choose nothing."""
    document = copy.deepcopy(GREETING)
    document["nodes"].append({"id": "route", "type": "SWITCH"})
    document["edges"] = [
        {"from": "route", "to": "greet", "condition": "{{input.name != ''}}"},
        {"from": "greet", "to": "shout"},
    ]
    write("doubtful.json", document)


def write_wrong() -> None:
    document = copy.deepcopy(GREETING)
    document["nodes"][1]["spec"]["input"]["text"] = "{{tasks.gret.output}}"
    document["edges"].append({"from": "shout", "to": "nowhere"})
    write("wrong.json", document)


def test_a_sound_document_is_ok() -> None:
    assert perdure("lint", "greeting.json").stdout == "greeting.json: ok\n"


@pytest.mark.rule("D-24")
def test_all_errors_are_told_with_pointers_and_end_with_2() -> None:
    write_wrong()
    said = perdure("lint", "wrong.json", "greeting.json", code=2).stdout
    assert "wrong.json:20:28: error: /nodes/1/spec/input/text (node shout):" in said
    assert "wrong.json:32:13: error: /edges/1/to" in said
    assert "greeting.json: ok" in said


def test_warnings_end_with_0_unless_strict() -> None:
    write_doubtful()
    said = perdure("lint", "doubtful.json").stdout
    assert "doubtful.json:24:5: warning: /nodes/2 (node route):" in said
    assert perdure("lint", "--strict", "doubtful.json", code=2).stdout == said


def test_json_gives_the_same_findings() -> None:
    write_wrong()
    write_doubtful()
    result = perdure("lint", "--json", "wrong.json", "doubtful.json", code=2)
    wrong, doubtful = json.loads(result.stdout)["files"]
    assert (wrong["file"], wrong["ok"], wrong["errors"]) == ("wrong.json", False, 2)
    assert (doubtful["ok"], doubtful["errors"], doubtful["warnings"]) == (True, 0, 2)
    assert sorted(wrong["findings"][0]) == [
        "column",
        "hint",
        "line",
        "message",
        "node",
        "pointer",
        "severity",
    ]
    assert {(f["pointer"], f["line"], f["column"]) for f in wrong["findings"]} == {
        ("/edges/1/to", 32, 13), ("/nodes/1/spec/input/text", 20, 28)
    }  # fmt: skip


def test_a_document_is_read_from_standard_input() -> None:
    text = Path("greeting.json").read_text(encoding="utf-8")
    assert perdure("lint", "-", input=text).stdout == "-: ok\n"
    assert (
        "-:1:2: error: the document is not JSON" in perdure("lint", "-", input="{", code=2).stdout
    )


def test_a_file_that_is_not_there_is_an_error_of_that_file() -> None:
    said = perdure("lint", "none.json", "greeting.json", code=2).stdout
    assert "none.json: error: the file cannot be read: No such file" in said
    assert "greeting.json: ok" in said


def test_without_files_it_says_what_to_type() -> None:
    assert "perdure lint FILE..." in perdure("lint", code=2).stderr


def test_the_schema_is_printed() -> None:
    schema = json.loads(perdure("lint", "--schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"name", "nodes", "edges"} <= set(schema["properties"])


def test_with_an_app_calls_of_steps_are_checked() -> None:
    document = copy.deepcopy(GREETING)
    document["nodes"][0]["spec"]["input"] = {"nmae": "{{input.name}}"}
    document["nodes"][1]["spec"]["step"] = "shuot"
    write("calls.json", document)
    assert perdure("lint", "calls.json").stdout == "calls.json: ok\n"
    said = perdure("lint", "calls.json", "--app", "steps.py", code=2).stdout
    assert 'step greet has no parameter "nmae"; did you mean "name"?' in said
    assert 'there is no step "shuot"; did you mean "shout"?' in said
    Path("pyproject.toml").write_text('[tool.perdure]\napp = "steps.py"\n', encoding="utf-8")
    assert perdure("lint", "calls.json", code=2).stdout == said


def test_an_app_that_cannot_be_imported_is_told() -> None:
    assert "there is no file none.py" in perdure(
        "lint", "greeting.json", "--app", "none.py", code=2
    ).stderr  # fmt: skip


def test_a_new_run_of_calls_that_cannot_work_is_refused_once() -> None:
    document = copy.deepcopy(GREETING)
    document["nodes"][0]["spec"]["input"] = {"nmae": "ann"}
    write("calls.json", document)
    for more in ((), ("--id", "1")):
        said = perdure("run", "calls.json", "--app", "steps.py", *more, code=2).stderr
        assert 'step greet has no parameter "nmae"; did you mean "name"?' in said
        assert said.count("has no parameter") == 1 + len(more) // 2
    assert not Path("calls.log").exists()
