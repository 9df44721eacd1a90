"""`perdure rehearse`: the route against mocks, expectations, coverage, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import calls, perdure, write

pytestmark = pytest.mark.usefixtures("folder")

MOCKS: dict[str, Any] = {
    "input": {"name": "Ann"},
    "steps": {"greet": {"result": "hello", "delay": "20s"}, "shout": "HELLO"},
}
ASKING = {
    "name": "asking",
    "nodes": [
        {"id": "route", "type": "SWITCH"},
        {"id": "ask", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "yes"}},
        {"id": "go", "type": "TASK", "spec": {"step": "greet", "input": {"name": "x"}}},
    ],
    "edges": [
        {"from": "route", "to": "ask", "condition": "{{input.careful}}"},
        {"from": "route", "to": "go", "default": True},
        {"from": "ask", "to": "go"},
    ],
}


def rehearse(*words: str, code: int = 0, **more: Any) -> Any:
    write("mocks.json", {**MOCKS, **more})
    return perdure("rehearse", "greeting.json", "--mock", "mocks.json", *words, code=code)


def test_the_route_is_printed_and_no_step_is_called() -> None:
    lines = rehearse().stdout.splitlines()
    assert lines == [
        "AT    NODE   STATUS     ATTEMPT  WHAT",
        '+0s   greet  completed  1        "hello" (took 20s)',
        '+20s  shout  completed  1        "HELLO"',
        "completed after 20s",
        'output: {"said": "HELLO"}',
    ]
    assert calls() == []
    assert not Path("perdure.db").exists()


def test_what_is_as_expected_is_told_and_what_differs_ends_with_1() -> None:
    expect = {"status": "completed", "route": ["greet", "shout"]}
    assert rehearse(expect=expect).stdout.endswith("as expected\n")
    result = rehearse(code=1, expect={"route": ["shout"]})
    assert "mocks.json: not as expected:\n  route: expected [shout]\n" in result.stderr


def test_without_expectations_the_outcome_is_the_exit_code() -> None:
    rehearse(code=1, steps={"greet": {"fail": "no"}})
    rehearse(expect={"status": "failed"}, steps={"greet": {"fail": "no"}})
    write("asking.json", ASKING)
    waiting = perdure("rehearse", "asking.json", "-i", '{"careful": true}', code=4)
    assert "waiting (ask waits for signal yes for ever) after 0s" in waiting.stdout


def test_input_and_default_stand_in_for_mocks() -> None:
    write("asking.json", ASKING)
    result = perdure("rehearse", "asking.json", "--default", "{}", "-i", '{"careful": false}')
    assert "chose go" in result.stdout


def test_real_steps_judge_the_input() -> None:
    rehearse("--app", "steps.py")
    result = rehearse("--app", "steps.py", code=1, input={"name": 5})
    assert "name" in result.stdout


def test_coverage_counts_all_rehearsals() -> None:
    write("asking.json", ASKING)
    write("quick.json", {"input": {"careful": False}, "default": 1})
    write("slow.json", {"input": {"careful": True}, "default": 1, "signals": [{"name": "yes"}]})
    one = perdure("rehearse", "asking.json", "-m", "quick.json", "--coverage").stdout
    assert "1 of 3 edges taken (33 %)\n  never taken: route → ask\n" in one
    both = perdure("rehearse", "asking.json", "-m", "quick.json", "-m", "slow.json", "--coverage")
    assert both.stdout.endswith("3 of 3 edges taken (100 %)\n")
    assert both.stdout.startswith("quick.json:\n")


def test_json_tells_it_all() -> None:
    result = rehearse("--json", "--coverage", expect={"status": "completed"})
    told = json.loads(result.stdout)
    (one,) = told["rehearsals"]
    assert (one["mocks"], one["status"], one["seconds"]) == ("mocks.json", "completed", 20.0)
    assert one["route"] == ["greet", "shout"]
    assert one["nodes"][0]["output"] == "hello"
    assert one["differences"] == []
    assert told["coverage"] == {"edges": 1, "percent": 100.0, "missed": [], "never_ran": []}


def test_how_it_went_is_drawn() -> None:
    rehearse("--draw", "went.svg")
    assert "greet, task, completed" in Path("went.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("mocks", "said"),
    [
        ({"steps": {"great": 1}}, "mocks.json: steps.great: greeting has no such node or step; d"),
        ({"steps": {"greet": 1}}, "node shout was reached and has no mock"),
        ({"expect": {"stat": 1}}, "expect: unknown key 'stat'"),
    ],
)
def test_mocks_that_do_not_fit_are_a_usage_error(mocks: dict[str, Any], said: str) -> None:
    assert said in rehearse(code=2, **mocks).stderr


def test_answers_for_attempts_that_a_step_did_not_have_are_told() -> None:
    twice = [{"fail": "busy"}, "HELLO"]
    said = rehearse(steps={**MOCKS["steps"], "shout": twice}, code=1).stdout
    note = "note: shout took 1 of its 2 answers: that was its last attempt"
    assert f"{note}; what its step says of retries counts with --app (steps=)" in said
    said = rehearse("--app", "steps.py", steps={**MOCKS["steps"], "shout": twice}, code=1).stdout
    assert f"{note}\n" in said
