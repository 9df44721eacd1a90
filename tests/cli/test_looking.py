"""`start`, `result`, `list` and `show`: what other processes ask about runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from perdure.stores.sqlite.locks import FileLock
from tests.cli.commands import BAD, GREETING, SLOW, calls, chain, perdure, run, task, write

pytestmark = pytest.mark.usefixtures("folder")

NAMED = ("--input", '{"name": "Ann"}', "--id")
ANN = (*NAMED, "ann")


def test_start_writes_a_run_and_works_on_nothing() -> None:
    result = perdure("start", "greeting.json", *ANN)
    assert result.stdout == "greeting/ann\n"
    assert result.stderr.startswith("started (running, version ")
    assert result.stderr.splitlines()[-1] == (
        "no worker is alive to take it: perdure worker greeting.json APP is one, and so is "
        "perdure run greeting.json --app APP --id ann"
    )
    assert calls() == []


def test_a_started_run_is_taken_by_the_next_worker() -> None:
    perdure("start", "greeting.json", *ANN)
    result = run("greeting.json", "--id", "ann")
    assert "greeting/ann begins at greet" in result.stderr
    assert result.stdout == '{"said": "HELLO, ANN"}\n'


def test_starting_a_run_that_is_there_leaves_it_as_it_is() -> None:
    first = json.loads(perdure("start", "greeting.json", *ANN, "--json").stdout)
    again = json.loads(perdure("start", "greeting.json", "--id", "ann", "--json").stdout)
    assert sorted(first) == ["created", "failure", "id", "status", "version", "workflow"]
    assert (first["created"], again["created"]) == (True, False)
    said = perdure("start", "greeting.json", *ANN).stderr
    assert "left as it is" in said
    assert "worker" not in said


def test_a_run_that_ended_at_its_start_is_not_said_to_wait_for_anybody() -> None:
    said = perdure("start", "greeting.json", "--id", "no-input").stderr
    assert said.startswith("started (failed, version ")
    assert "worker" not in said


def test_of_a_run_that_failed_at_its_start_is_told_why() -> None:
    words = ("start", "greeting.json", "--id", "no-input")
    first, failed, why = perdure(*words).stderr.splitlines()
    assert first.startswith("started (failed, version ")
    assert failed == "perdure: greeting/no-input failed"
    assert why.startswith("  node greet: the input of node greet cannot be resolved: no such field")
    again = perdure(*words)
    assert again.stderr.splitlines()[1:] == [failed, why]
    assert again.stdout == "greeting/no-input\n"
    failure = json.loads(perdure(*words, "--json").stdout)["failure"]
    assert sorted(failure) == ["details", "kind", "message"]


def test_a_workflow_the_store_knows_is_started_by_its_name() -> None:
    perdure("start", "greeting.json", *ANN)
    Path("greeting.json").unlink()
    assert perdure("start", "greeting", "--id", "bob").stdout == "greeting/bob\n"
    said = perdure("start", "unknown", code=3).stderr
    assert "no file unknown, and no workflow unknown in the store: give the" in said


def test_start_in_memory_is_refused_since_nobody_would_ever_see_it() -> None:
    assert "one process" in perdure("start", "greeting.json", "--store", "memory:", code=2).stderr


def test_result_prints_the_recorded_output() -> None:
    run("greeting.json", *ANN)
    assert perdure("result", "greeting/ann").stdout == '{"said": "HELLO, ANN"}\n'
    document = json.loads(perdure("result", "greeting/ann", "--json").stdout)
    assert (document["status"], document["output"]) == ("completed", {"said": "HELLO, ANN"})


def test_result_of_a_failed_run_ends_with_1_and_says_why() -> None:
    write("bad.json", BAD)
    run("bad.json", "--id", "b", code=1)
    result = perdure("result", "bad/b", code=1)
    assert result.stdout == ""
    assert "  node refuse, attempt 2: unlucky: no luck today" in result.stderr


@pytest.mark.parametrize("words", [(), ("--timeout", "0.05")])
def test_result_of_a_run_that_goes_on_ends_with_4(words: tuple[str, ...]) -> None:
    perdure("start", "greeting.json", *ANN)
    result = perdure("result", "greeting/ann", *words, code=4)
    assert "greeting/ann has not ended" in result.stderr
    assert json.loads(perdure("result", "greeting/ann", "--json", code=4).stdout)["output"] is None


def test_a_run_that_is_not_there_ends_with_3() -> None:
    perdure("start", "greeting.json", *ANN)
    for command in ("result", "show"):
        said = perdure(command, "greeting/none", code=3).stderr
        assert "no run 'none' of greeting; perdure list shows the runs that are there" in said


def test_list_shows_runs_newest_first() -> None:
    run("greeting.json", *ANN)
    perdure("start", "greeting.json", *NAMED, "bob")
    head, *lines = perdure("list").stdout.splitlines()
    assert head.split() == ["RUN", "STATUS", "VERSION", "STARTED", "TOOK"]
    assert [line.split()[:2] for line in lines] == [
        ["greeting/bob", "running"], ["greeting/ann", "completed"],
    ]  # fmt: skip


def test_list_can_be_narrowed() -> None:
    write("other.json", {**GREETING, "name": "other"})
    run("greeting.json", *ANN)
    perdure("start", "other.json", *NAMED, "o")
    perdure("start", "greeting.json", *NAMED, "bob")

    def listed(*words: str) -> list[str]:
        found = json.loads(perdure("list", "--json", *words).stdout)["runs"]
        return [one["id"] for one in found]

    assert listed() == ["bob", "o", "ann"]
    assert listed("--workflow", "other") == ["o"]
    assert listed("--status", "completed") == ["ann"]
    assert listed("--status", "completed", "--status", "running") == ["bob", "o", "ann"]
    assert listed("--limit", "1") == ["bob"]


def test_list_says_when_there_is_more_or_nothing() -> None:
    perdure("start", "greeting.json", "--id", "a")
    perdure("start", "greeting.json", "--id", "b")
    assert "--limit shows more" in perdure("list", "--limit", "1").stderr
    assert json.loads(perdure("list", "--limit", "1", "--json").stdout)["more"] is True
    assert json.loads(perdure("list", "--json").stdout)["more"] is False
    assert perdure("list", "--workflow", "none").stderr == "no such runs\n"


@pytest.mark.parametrize("words", [("list",), ("show", "a/b"), ("result", "a/b")])
def test_looking_never_makes_a_database(words: tuple[str, ...]) -> None:
    result = perdure(*words, code=5)
    assert "there is no database perdure.db" in result.stderr
    assert "--store or PERDURE_STORE" in result.stderr
    assert not Path("perdure.db").exists()


def test_show_tells_the_run_and_its_nodes() -> None:
    run("greeting.json", *ANN)
    said = perdure("show", "greeting/ann").stdout
    assert "run       greeting/ann\nstatus    completed\n" in said
    rows = [line.split(maxsplit=5) for line in said.splitlines()[-2:]]
    assert [row[:3] for row in rows] == [["greet", "completed", "1"], ["shout", "completed", "1"]]
    assert rows[0][5] == "hello, Ann"


def test_show_of_a_run_under_way_tells_what_it_is_at() -> None:
    write("slow.json", SLOW)
    run("slow.json", *ANN, "--timeout", "0.3", "--grace", "0", code=4)
    said = perdure("show", "slow/ann").stdout
    assert "status    running for " in said
    assert said.splitlines()[-1].split()[:3] == ["wait", "pending", "1"]
    assert said.splitlines()[-1].endswith(" so far")


def test_show_of_a_failed_run_tells_why() -> None:
    write("bad.json", BAD)
    run("bad.json", "--id", "b", code=1)
    said = perdure("show", "bad/b").stdout
    assert "failure   node refuse failed: unlucky: no luck today\n" in said
    assert "unlucky: no luck today" in said.splitlines()[-1]


def test_why_of_a_failed_run_tells_every_attempt() -> None:
    write("bad.json", BAD)
    run("bad.json", "--id", "b", code=1)
    said = perdure("why", "bad/b").stdout
    lines = [line.strip() for line in said.splitlines()]
    assert lines[:3] == [
        "bad/b failed", "node refuse, attempt 2: unlucky: no luck today",
        "attempt 1: unlucky: no luck today",
    ]  # fmt: skip
    assert "What failed is done again by: perdure retry bad/b" in said
    (failed,) = json.loads(perdure("why", "bad/b", "--json").stdout)["failed"]
    assert [error["attempt"] for error in failed["errors"]] == [1, 2]


def test_show_of_a_run_that_nobody_works_on_says_what_to_do() -> None:
    perdure("start", "greeting.json", *ANN)
    said = perdure("show", "greeting/ann").stdout
    assert "worker    none: it is due, for 0." in said
    assert "\n          -> start one that has greeting: perdure worker FILE APP\n" in said
    assert json.loads(perdure("show", "greeting/ann", "--json").stdout)["held_by"] is None


def test_history_has_every_record_in_order() -> None:
    run("greeting.json", *ANN)
    lines = perdure("show", "greeting/ann", "--history").stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("TIME"))
    assert [line.split()[1] for line in lines[start + 1 :]] == [
        "OpenRun", "CreateTask", "DispatchTask", "CompleteTask", "CreateTask", "DispatchTask",
        "CompleteTask", "FinishRun",
    ]  # fmt: skip


@pytest.mark.rule("D-2")
def test_json_of_a_run_has_nodes_and_history_with_attempts_from_one() -> None:
    run("greeting.json", *ANN)
    document = json.loads(perdure("show", "greeting/ann", "--history", "--json").stdout)
    greet = document["nodes"][0]
    assert sorted(greet) == [
        "attempt", "branches", "ended", "failure", "node", "output", "restarts", "signal",
        "started", "status", "until",
    ]  # fmt: skip
    assert (greet["node"], greet["attempt"], greet["output"]) == ("greet", 1, "hello, Ann")
    assert document["history"][0]["do"] == "OpenRun"
    assert document["history"][0]["input"] == {"name": "Ann"}
    assert {r["attempt"] for r in document["history"] if "attempt" in r} == {1}
    assert "history" not in json.loads(perdure("show", "greeting/ann", "--json").stdout)


def test_values_that_stand_apart_are_shown_whole_in_json_and_shortened_for_people() -> None:
    write("big.json", chain("big", task("shout", "shout", {"text": "{{input}}"})))
    run("big.json", "--id", "b", "--input", json.dumps("x" * 20_000))
    document = json.loads(perdure("show", "big/b", "--history", "--json").stdout)
    assert document["nodes"][0]["output"] == "X" * 20_000
    assert document["history"][0]["input"] == "x" * 20_000
    assert max(map(len, perdure("show", "big/b", "--history").stdout.splitlines())) < 400


def test_a_run_is_named_by_workflow_and_id() -> None:
    assert "write workflow/id" in perdure("show", "greeting", code=2).stderr
    perdure("start", "greeting.json", "--id", "a/b")
    assert "greeting/a/b" in perdure("show", "greeting/a/b").stdout


def test_who_only_looks_needs_no_lock_where_two_processes_may_not_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run("greeting.json", *ANN)
    monkeypatch.setattr("perdure.stores.sqlite.sharing.has_wal_reset_bug", lambda: True)
    worker = FileLock.take(Path("perdure.db-lock"))
    assert worker is not None
    try:
        other = ("--input", '{"name": "Bob"}', "--id", "bob")
        assert "is in use by" in run("greeting.json", *other, code=5).stderr
        assert "already completed" in run("greeting.json", *ANN).stderr
        assert "greeting/ann" in perdure("list").stdout
        assert "completed" in perdure("show", "greeting/ann").stdout
        assert perdure("result", "greeting/ann", "--wait").stdout == '{"said": "HELLO, ANN"}\n'
    finally:
        worker.release()


def test_history_tells_moments_as_times() -> None:
    write("bad.json", {**BAD, "max_duration": "1h"})
    run("bad.json", "--id", "b", code=1)
    said = perdure("show", "bad/b", "--history").stdout
    moments = re.findall(r"(?:deadline|not_before)=(\S+ \S+)", said)
    assert len(moments) == 2
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", moment) for moment in moments)


def test_show_says_that_a_run_is_paused() -> None:
    perdure("start", "greeting.json", *ANN)
    perdure("pause", "greeting/ann")
    assert "\npaused    it is to pause, and has not read that yet\n" in shown("greeting/ann")
    run("greeting.json", "--id", "ann", "--timeout", "0.5", code=4)
    assert "\npaused    for " in shown("greeting/ann")
    perdure("unpause", "greeting/ann")
    run("greeting.json", "--id", "ann")
    assert "paused" not in shown("greeting/ann")


def test_a_failure_of_a_node_is_told_in_json_unless_it_completed() -> None:
    write("bad.json", BAD)
    run("bad.json", "--id", "b", code=1)
    greet, refuse = json.loads(perdure("show", "bad/b", "--json").stdout)["nodes"]
    assert greet["failure"] is None
    told = {"kind": "unlucky", "message": "no luck today", "details": None}
    assert refuse["failure"] == told


def shown(name: str) -> str:
    return perdure("show", name).stdout
