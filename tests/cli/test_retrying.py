"""`perdure retry` with something new: the run goes on with it."""

from __future__ import annotations

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
