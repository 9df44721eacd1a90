"""Graphs that ask for other runs, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import perdure, write
from tests.cli.programs import HELLO

CHILD = {
    "id": "join",
    "type": "CHILD",
    "timeout": "1h",
    "spec": {"workflow": "sign-up", "id": "s", "input": "{{input}}"},
}
ORDER = {"name": "order", "nodes": [CHILD], "output": "{{tasks.join.output}}"}


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    """many.py with workflows, order.json that asks for one of them."""
    (folder / "many.py").write_text(HELLO, encoding="utf-8")
    write("order.json", ORDER)


def test_the_run_that_a_node_waits_for_is_served_beside_it_and_named() -> None:
    run = ("run", "order.json", "--app", "many.py", "--id", "o")
    perdure(*run, "--input", '"a"', "--timeout", "0.5", code=4)
    said = perdure("why", "order/o").stdout
    assert "join  waits for run sign-up/s, for " in said
    assert "; gives up at " in said
    assert "-> perdure why sign-up/s" in said
    shown = json.loads(perdure("show", "order/o", "--json").stdout)
    assert [(node["node"], node["status"]) for node in shown["nodes"]] == [("join", "pending")]
    perdure("signal", "sign-up/s", "confirmed", '"Ann"')
    assert perdure(*run).stdout == '"done"\n'
    told = perdure("watch", "order/o").stderr + perdure("show", "order/o").stdout
    assert "completed" in told


def test_another_attempt_is_told_with_its_time() -> None:
    slow = {**CHILD, "timeout": 0.1, "retry": {"attempts": 2, "initial": "1h", "max_delay": 0}}
    write("order.json", {**ORDER, "nodes": [slow]})
    run = ("run", "order.json", "--app", "many.py", "--id", "o", "--input", '"a"')
    perdure(*run, "--timeout", "1", code=4)
    said = perdure("why", "order/o").stdout
    assert "attempt 2 of 2 is due in " in said
    assert "since attempt 1 failed: " in said
    assert "took longer than 0.1 s" in said
    assert "canceled" in perdure("list", "--workflow", "sign-up").stdout


def test_lint_tells_of_a_workflow_that_the_app_does_not_have() -> None:
    wrong = {**CHILD, "spec": {"workflow": "sign-upp"}}
    write("order.json", {**ORDER, "nodes": [wrong]})
    told = perdure("lint", "order.json", "--app", "many.py").stdout
    assert 'warning: /nodes/0/spec/workflow (node join): no workflow or graph "sign-upp"' in told


def test_a_rehearsal_answers_for_the_run_or_lets_it_run() -> None:
    write("mocks.json", {"input": "a", "steps": {"join": "yes"}})
    told = perdure("rehearse", "order.json", "-m", "mocks.json").stdout
    assert "output: yes" in told
    told = perdure("rehearse", "order.json", "--app", "many.py", "--input", '"a"', "--default",
                   "{}", "--json", code=1).stdout  # fmt: skip
    (one,) = json.loads(told)["rehearsals"]
    assert "step mail" in one["failure"]["message"] or one["failure"]["kind"] == "InvalidRequest"
