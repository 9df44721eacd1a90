"""`perdure signal` holds a value against what the code of a workflow takes, where that is here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import chain, perdure, write

PROGRAM = """
from perdure import Context, Signal, step, workflow

approved = Signal("approved", dict[str, int])
odd = (Signal("odd", int), Signal("odd", str))
first, second = odd


@workflow(max_duration="1d")
async def asks(ctx: Context) -> int:
    given = await ctx.wait(approved["boss"])
    return given["sum"]
"""


@pytest.fixture(autouse=True)
def asks(folder: Path) -> None:
    (folder / "asks.py").write_text(PROGRAM, encoding="utf-8")
    perdure("run", "asks.py", "--id", "1", "--timeout", "0.2", code=4)


APP = ("--app", "asks.py")


def sent(*words: str, code: int = 0) -> str:
    return perdure("signal", "asks/1", *words, code=code).stderr


def test_a_value_that_the_code_could_not_read_is_not_sent() -> None:
    said = sent("approved[boss]", '"yes"', *APP, code=2)
    assert "signal approved: Expected `object`, got `str`; nothing was sent to asks/1" in said
    assert "Expected `object`, got `null`" in sent("approved[boss]", *APP, code=2)
    assert "at `$[...]`" in sent("approved[boss]", '{"sum": "7"}', *APP, code=2)
    assert sent("approved[boss]", '{"sum": 7}', *APP) == "signal approved[boss] is sent to asks/1\n"
    assert perdure("run", "asks.py", "--id", "1").stdout == "7\n"


def test_where_it_cannot_be_checked_that_is_said_and_it_is_sent() -> None:
    unknown = "the value was not checked: --app FILE.py says where the code of asks is"
    assert unknown in sent("approved[boss]", '"yes"')
    several = "the value was not checked: the code of asks has several signals odd"
    assert several in sent("odd", "1", *APP)
    missing = "the value was not checked: the code of asks names no signal aproved"
    assert missing in sent("aproved", "1", *APP)
    assert missing in sent("aproved", "1", *APP)


def test_the_project_s_app_is_looked_into_but_hinders_nothing(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.perdure]\napp = "asks.py"\n', encoding="utf-8")
    assert "Expected `object`" in sent("approved[boss]", "1", code=2)
    (folder / "broken.py").write_text("1 / 0", encoding="utf-8")
    (folder / "pyproject.toml").write_text('[tool.perdure]\napp = "broken.py"\n', encoding="utf-8")
    said = sent("approved[boss]", "1")
    assert "the value was not checked: the project's app cannot be used: app broken.py" in said
    assert "ZeroDivisionError" in sent("approved[boss]", "1", "--app", "broken.py", code=2)


def test_programs_are_told_whether_it_was_checked() -> None:
    for words, checked in ((APP, True), ((), False)):
        result = perdure("signal", "asks/1", "approved[boss]", '{"sum": 7}', "--json", *words)
        assert json.loads(result.stdout)["checked"] is checked


def test_of_many_runs_those_that_could_not_read_it_are_named() -> None:
    waits = {"id": "ok", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "approved"}}
    perdure("start", write("greeting.json", chain("greeting", waits)), "--id", "g")
    many = ("signal", "--where", "status=running", "approved", "1", "--yes")
    result = perdure(*many, *APP, "--json", code=1)
    told = {run["workflow"]: run["error"] for run in json.loads(result.stdout)["runs"]}
    assert told["greeting"] is None
    assert "Expected `object`, got `int`; nothing was sent to asks/1" in told["asks"]
    assert "the value was not checked: --app FILE.py says" in perdure(*many).stderr
