"""`--where`: one grammar for `list`, and for telling many runs the same thing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from perdure.client.client import Client
from tests.cli.commands import BAD, GREETING, perdure, run, write

pytestmark = pytest.mark.usefixtures("folder")

NAMED = ("--input", '{"name": "Ann"}', "--id")


@pytest.fixture
def runs(folder: Any) -> None:
    """greeting/done has completed, bad/b has failed, greeting/one, two and other/one go on."""
    write("bad.json", BAD)
    write("other.json", {**GREETING, "name": "other", "version": "7"})
    run("greeting.json", *NAMED, "done")
    run("bad.json", "--id", "b", code=1)
    for name in ("one", "two"):
        perdure("start", "greeting.json", *NAMED, name)
    perdure("start", "other.json", *NAMED, "one")


def listed(*where: str) -> list[str]:
    words = [word for one in where for word in ("--where", one)]
    found = json.loads(perdure("list", "--json", *words).stdout)["runs"]
    return sorted(f"{one['workflow']}/{one['id']}" for one in found)


@pytest.mark.usefixtures("runs")
def test_conditions_narrow_and_the_same_key_again_widens() -> None:
    assert listed("status=failed") == ["bad/b"]
    assert listed("status=failed,completed") == ["bad/b", "greeting/done"]
    assert listed("status=failed", "status=completed") == ["bad/b", "greeting/done"]
    assert listed("workflow=greeting", "status=running") == ["greeting/one", "greeting/two"]
    assert listed("workflow=other", "workflow=bad") == ["bad/b", "other/one"]
    assert listed("id=o*") == ["greeting/one", "other/one"]
    assert listed("id=one", "id=t*") == ["greeting/one", "greeting/two", "other/one"]
    assert listed("version=7") == ["other/one"]
    assert listed("version=7", "version=none") == ["other/one"]
    assert listed("older=1d") == listed("newer=0") == listed("status=stalled") == []
    assert len(listed("newer=1d")) == len(listed("older=0")) == 5
    assert len(listed("older=0", "older=1d")) == len(listed("newer=1d", "newer=0")) == 5
    assert listed("older=0", "newer=0") == []


def test_metadata_is_looked_for() -> None:
    async def start() -> None:
        from perdure.graph.definition import Graph

        async with Client("sqlite:///perdure.db") as client:
            for id, who in (("a", "ann"), ("b", "bob")):
                graph = Graph.read("greeting.json")
                await client.start(graph, None, id=id, metadata={"who": who, "in=": "x"})

    asyncio.run(start())
    assert listed("metadata.who=ann") == ["greeting/a"]
    assert listed("metadata.who=ann", "metadata.who=bob") == ["greeting/a", "greeting/b"]
    assert listed("metadata.none=ann") == []


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("failed", "write KEY=VALUE, such as status=failed"),
        ("status=", "write KEY=VALUE"),
        ("state=failed", "'state' is not known: there are status, workflow"),
        ("metadata.=x", "'metadata.' is not known"),
        ("status=gone", "status 'gone' is not known: there are running"),
        ("older=long", "duration"),
    ],
)
def test_a_condition_that_cannot_be_read_is_refused(condition: str, text: str) -> None:
    for words in (("list",), ("cancel", "--yes")):
        assert text in perdure(*words, "--where", condition, code=2).stderr


@pytest.mark.usefixtures("runs")
def test_many_are_told_what_is_meant_and_nothing_else() -> None:
    words = ("cancel", "--where", "workflow=greeting", "--yes")
    said = perdure(*words).stderr
    assert "cancel: 2 runs\n  greeting/two  running\n  greeting/one  running\n" in said
    assert said.endswith("cancel: 2 of 2 runs told\n")
    run("greeting.json", *NAMED, "one", code=1)
    assert listed("status=canceled") >= ["greeting/one"]
    assert listed("workflow=other", "status=running") == ["other/one"]


@pytest.mark.usefixtures("runs")
def test_a_dry_run_does_nothing() -> None:
    words = ("retry", "--where", "workflow=bad", "--dry-run")
    assert perdure(*words).stderr == "retry: 1 run\n  bad/b  failed\n"
    document = json.loads(perdure(*words, "--json").stdout)
    assert (document["dry_run"], document["matched"], document["done"]) == (True, 1, 0)
    assert listed("status=failed") == ["bad/b"]


@pytest.mark.usefixtures("runs")
def test_it_is_asked_before_anything_is_done() -> None:
    words = ("retry", "--where", "workflow=bad")
    assert "nothing was done" in perdure(*words, input="n\n", code=1).stderr
    assert "give --yes" in perdure(*words, input="", code=2).stderr
    assert "give --yes" in perdure(*words, "--json", code=2).stderr
    assert listed("status=failed") == ["bad/b"]
    assert "retry: 1 of 1 run told" in perdure(*words, input="y\n").stderr
    assert listed("status=failed") == []


@pytest.mark.usefixtures("runs")
def test_retry_means_failed_and_canceled_runs_unless_a_status_is_said() -> None:
    document = json.loads(perdure("retry", "--where", "newer=1d", "--yes", "--json").stdout)
    assert [(one["workflow"], one["id"]) for one in document["runs"]] == [("bad", "b")]


@pytest.mark.usefixtures("runs")
def test_a_run_that_cannot_be_told_does_not_hinder_the_others() -> None:
    words = ("pause", "--where", "workflow=greeting", "--where", "status=running,completed")
    result = perdure(*words, "--yes", "--json", code=1)
    document = json.loads(result.stdout)
    assert (document["matched"], document["done"], document["failed"]) == (3, 2, 1)
    errors = {one["id"]: one["error"] for one in document["runs"]}
    assert (errors["one"], errors["two"]) == (None, None)
    assert errors["done"].startswith("greeting/done has ended")
    assert f"{errors['done']}\npause: 2 of 3 runs told, 1 failed" in result.stderr


@pytest.mark.usefixtures("runs")
def test_a_signal_goes_to_many() -> None:
    words = ("signal", "--where", "id=one", "approved", '{"by": "ann"}', "--yes", "--json")
    document = json.loads(perdure(*words).stdout)
    assert (document["action"], document["done"]) == ("signal approved", 2)
    why = json.loads(perdure("why", "other/one", "--json").stdout)
    assert why["unread"] == 1


@pytest.mark.usefixtures("runs")
def test_more_than_ten_are_counted() -> None:
    for n in range(12):
        perdure("start", "other.json", *NAMED, f"n{n}")
    said = perdure("unpause", "--where", "workflow=other", "--dry-run").stderr.splitlines()
    assert said[0] == "unpause: 13 runs"
    assert (len(said), said[-1]) == (12, "  … and 3 more")


@pytest.mark.usefixtures("runs")
def test_nothing_that_is_meant_is_no_error() -> None:
    assert perdure("cancel", "--where", "id=x", "--yes").stderr == "no such runs\n"
    document = json.loads(perdure("cancel", "--where", "id=x", "--yes", "--json").stdout)
    assert (document["matched"], document["runs"]) == (0, [])


@pytest.mark.parametrize("command", ["cancel", "pause", "unpause", "retry", "signal"])
def test_one_run_or_many_must_be_said(command: str) -> None:
    name = ("go",) if command == "signal" else ()
    assert perdure(command, "a/b", *name, "--yes", code=2).stderr != ""
    if command == "signal":
        assert "write perdure signal --where" in perdure("signal", "--where", "id=x", code=2).stderr
        assert "write perdure signal WORKFLOW/ID" in perdure("signal", "a/b", code=2).stderr
        assert "is not a run" in perdure("signal", "go", code=2).stderr
    else:
        assert "not both" in perdure(command, "a/b", "--where", "id=x", code=2).stderr
        assert "say which run" in perdure(command, code=2).stderr
