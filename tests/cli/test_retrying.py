"""`perdure retry` with something new: the run goes on with it."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands import perdure, run, task, write

pytestmark = pytest.mark.usefixtures("folder")


def test_a_retry_may_bring_another_config_and_input() -> None:
    text = "{{config.word + input.name}}"
    write("c.json", {"name": "c", "nodes": [task("shout", "shout", {"text": text})]})
    run("c.json", "--id", "1", "--input", '{"name": "ann"}', code=1)
    words = ("retry", "c/1", "--config", '{"word": "hi "}')
    assert "goes on from what failed" in perdure(*words, "--input", '{"name": "bob"}').stderr
    assert "HI BOB" in run("c.json", "--id", "1").stdout


def test_a_config_that_is_no_object_retries_nothing() -> None:
    run("greeting.json", "--id", "1", "--input", '{"name": "Ann"}')
    said = perdure("retry", "greeting/1", "--config", "3", code=2).stderr
    assert "--config is not a JSON object" in said


def test_a_paused_run_that_a_retry_ends_at_once_waits_for_no_unpause() -> None:
    nodes = [
        {"id": "choice", "type": "SWITCH"},
        {"id": "wait", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "go", "timeout": "1h"}},
    ]
    edge = {"from": "choice", "to": "wait", "condition": "{{!has(config.end)}}"}
    write("p.json", {"name": "p", "nodes": nodes, "edges": [edge]})
    perdure("start", "p.json", "--id", "1")
    perdure("pause", "p/1")
    perdure("cancel", "p/1")
    run("p.json", "--id", "1", code=1)
    words = ("retry", "p/1", "--from", "choice", "--config", '{"end": true}')
    told = json.loads(perdure(*words, "--json").stdout)
    assert (told["status"], told["paused"]) == ("completed", False)
