"""`perdure run`: what it prints where, how it joins, and every way it can end."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from perdure.engine.handlers.http import HttpHandler
from tests.cli.commands import BAD, GREETING, SLOW, calls, chain, perdure, run, task, write

pytestmark = pytest.mark.usefixtures("folder")

ANN = ("--input", '{"name": "Ann"}', "--id", "ann")


def test_the_output_is_all_there_is_on_stdout() -> None:
    result = run("greeting.json", *ANN)
    assert result.stdout == '{"said": "HELLO, ANN"}\n'
    assert "hello, Ann, on stdout" in result.stderr


def test_without_a_terminal_each_change_is_a_line() -> None:
    lines = run("greeting.json", *ANN).stderr.splitlines()
    told = [line[10:] for line in lines if line[:2].isdigit()]
    assert told[0].startswith("greeting/ann starts, version ")
    assert told[1] == "greet  started (attempt 1)"
    assert told[2].startswith("greet  completed (attempt 1, ")
    assert told[3] == "shout  started (attempt 1)"
    assert told[4].startswith("shout  completed (attempt 1, ")
    assert len(told) == 5


def test_a_new_id_is_made_and_told_with_the_command_that_goes_on() -> None:
    result = run("greeting.json", "--input", '{"name": "Ann"}')
    assert "if this process dies, go on with: perdure run greeting.json --id 0" in result.stderr
    assert "--app steps.py" in result.stderr


def test_json_is_one_document_about_the_run() -> None:
    document = json.loads(run("greeting.json", *ANN, "--json").stdout)
    assert sorted(document) == [
        "created", "failure", "finished", "id", "metadata", "output", "stalled", "status",
        "version", "workflow",
    ]  # fmt: skip
    assert (document["workflow"], document["id"], document["status"]) == (
        "greeting", "ann", "completed",
    )  # fmt: skip
    assert document["output"] == {"said": "HELLO, ANN"}
    assert document["created"].endswith("Z")


def test_a_run_that_is_there_is_joined_and_nothing_runs_again() -> None:
    run("greeting.json", *ANN)
    result = run("greeting.json", *ANN)
    assert result.stdout == '{"said": "HELLO, ANN"}\n'
    assert "greeting/ann has already completed" in result.stderr
    assert calls() == ["greet 1", "shout 1"]


def test_joining_with_another_input_says_that_the_run_keeps_its_own() -> None:
    run("greeting.json", *ANN)
    result = run("greeting.json", "--id", "ann", "--input", '{"name": "Bob"}')
    assert "was started with another input and keeps that one" in result.stderr
    assert "another input" not in run("greeting.json", *ANN).stderr
    assert "another input" not in run("greeting.json", "--id", "ann").stderr


@pytest.mark.rule("D-36")
def test_a_run_keeps_the_version_it_was_started_with_and_says_so() -> None:
    write("slow.json", SLOW)
    run("slow.json", *ANN, "--timeout", "0.5", "--grace", "0", code=4)
    changed = copy.deepcopy(SLOW)
    changed["version"] = "two"
    changed["output"] = {"other": "{{tasks.shout.output}}"}
    write("slow.json", changed)
    Path("go").touch()
    result = run("slow.json", "--id", "ann")
    assert "of the document and keeps it; slow.json is version two now" in result.stderr
    assert result.stdout == '{"said": "HELLO, ANN"}\n'


def test_when_the_time_is_over_the_run_stays_and_the_next_command_is_told() -> None:
    write("slow.json", SLOW)
    result = run("slow.json", *ANN, "--timeout", "0.5", "--grace", "0", code=4)
    assert result.stdout == ""
    assert "perdure: slow/ann has not ended within 0.5 s" in result.stderr
    assert result.stderr.splitlines()[-1] == "  perdure run slow.json --id ann --app steps.py"


def test_the_next_process_goes_on_where_the_last_one_stopped() -> None:
    write("slow.json", SLOW)
    run("slow.json", *ANN, "--timeout", "0.5", "--grace", "0", code=4)
    Path("go").touch()
    result = run("slow.json", "--id", "ann")
    assert "slow/ann goes on from " in result.stderr
    assert ": 1 node is recorded, and not done again" in result.stderr
    assert calls().count("greet 1") == 1


def test_going_on_needs_no_input_where_the_document_asks_for_one() -> None:
    write("slow.json", {**SLOW, "input": {"type": "object", "required": ["name"]}})
    run("slow.json", *ANN, "--timeout", "0.5", "--grace", "0", code=4)
    Path("go").touch()
    assert json.loads(run("slow.json", "--id", "ann").stdout)["said"] == "HELLO, ANN"


def test_an_input_that_does_not_fit_is_refused_before_anything_else_is_taken_up() -> None:
    write("slow.json", {**SLOW, "input": {"type": "object", "required": ["name"]}})
    run("slow.json", *ANN, "--timeout", "0.5", "--grace", "0", code=4)
    result = run("slow.json", "--id", "bob", "--input", "{}", code=2)
    assert result.stderr.splitlines() == [
        'perdure: the input of slow does not fit its schema: input: "name" is missing'
    ]


@pytest.mark.rule("D-2")
def test_a_failed_run_ends_with_1_and_says_node_attempt_and_what_to_do() -> None:
    write("bad.json", BAD)
    result = run("bad.json", "--id", "b", code=1)
    assert result.stdout == ""
    again = "perdure run bad.json --id b --app steps.py"
    assert result.stderr.splitlines()[-4:] == [
        "perdure: bad/b failed",
        "  node refuse, attempt 2: unlucky: no luck today",
        "What happened, step by step: perdure show bad/b --history",
        f"When the cause is mended, what failed is done again: perdure retry bad/b && {again}",
    ]
    assert "attempt 1 failed: unlucky: no luck today; attempt 2 in " in result.stderr


def test_a_failed_run_that_is_joined_tells_the_same_again() -> None:
    write("bad.json", BAD)
    run("bad.json", "--id", "b", code=1)
    result = run("bad.json", "--id", "b", "--json", code=1)
    assert "bad/b has already failed" in result.stderr
    assert "  node refuse, attempt 2: unlucky: no luck today" in result.stderr
    document = json.loads(result.stdout)
    assert (document["status"], document["output"]) == ("failed", None)
    assert document["failure"]["kind"] == "unlucky"


def test_config_and_start_node_are_passed_on() -> None:
    document = chain(
        "c",
        task("greet", "greet", {"name": "nobody"}),
        task("shout", "shout", {"text": "{{config.word}}"}),
    )
    write("c.json", document)
    result = run("c.json", "--start-node", "shout", "--config", '{"word": "hi"}')
    assert (result.stdout, calls()) == ('{"shout": "HI"}\n', ["shout 1"])
    assert (
        "start node none is not in graph c" in run("c.json", "--start-node", "none", code=2).stderr
    )


def test_input_comes_from_a_file_or_from_standard_input() -> None:
    write("in.json", {"name": "Ann"})
    assert "ANN" in run("greeting.json", "--input", "@in.json").stdout
    words = ("run", "greeting.json", "--app", "steps.py", "--input", "-")
    assert "BOB" in perdure(*words, input='{"name": "Bob"}').stdout


def test_the_store_is_that_of_the_option_else_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERDURE_STORE", "sqlite:///env.db")
    run("greeting.json", *ANN)
    run("greeting.json", *ANN, "--store", "sqlite:///option.db")
    assert Path("env.db").exists()
    assert Path("option.db").exists()
    assert not Path("perdure.db").exists()


def test_the_app_of_the_project_is_used() -> None:
    Path("pyproject.toml").write_text('[tool.perdure]\napp = "steps.py"\n')
    assert "ANN" in perdure("run", "greeting.json", *ANN).stdout


def test_a_run_in_memory_works_too() -> None:
    assert "ANN" in run("greeting.json", *ANN, "--store", "memory:").stdout


@pytest.mark.rule("D-24")
@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"nodes": []}, "/nodes"),
        ({"nodse": 1}, '"nodse"'),
        ({"edges": [{"from": "greet", "to": "greet"}]}, "greet"),
        ({"edges": [{"from": "greet", "to": "nowhere"}]}, 'no node "nowhere"'),
        ({"nodes": [*GREETING["nodes"], GREETING["nodes"][0]]}, 'the id "greet" is also'),
        ({"output": "{{ tasks. }}"}, "/output"),
    ],
)
def test_a_bad_document_is_told_with_its_places_and_starts_nothing(
    change: dict[str, Any], part: str
) -> None:
    write("greeting.json", {**GREETING, **change})
    result = run("greeting.json", code=2)
    assert "perdure: greeting.json: graph greeting has " in result.stderr
    assert part in result.stderr
    assert not Path("perdure.db").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--input", "{"), "--input is not JSON: line 1, column 2"),
        (("--config", "[]"), "--config is not a JSON object"),
        (("--timeout", "soon"), "is not a duration"),
        (("--id", ""), "use a non-empty string"),
        (("--id", "a\nb"), "control characters"),
        (("--store", "postgres://x"), "store 'postgres://x' is not known"),
        (("--store", "sqlite://x.db"), "names no file"),
        (("--app", "none"), "there is no module none"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_to_write(words: tuple[str, ...], part: str) -> None:
    result = run("greeting.json", *words, code=2)
    assert part in result.stderr
    assert result.stdout == ""


def test_a_step_that_no_app_has_is_told_before_anything_starts() -> None:
    result = perdure("run", "greeting.json", code=2)
    assert "node greet calls step greet" in result.stderr
    assert "--app steps.py" in result.stderr
    assert not Path("perdure.db").exists()


def test_a_run_that_cannot_go_on_says_why_and_goes_on_when_that_is_mended() -> None:
    perdure("start", "greeting.json", *ANN)
    steps = Path("steps.py").read_text(encoding="utf-8")
    Path("steps.py").write_text(steps.replace("def greet(", "def welcome("), encoding="utf-8")
    changed = copy.deepcopy(GREETING)
    changed["nodes"][0]["spec"]["step"] = "welcome"
    write("greeting.json", changed)
    result = run("greeting.json", "--id", "ann", code=1)
    assert "perdure: greeting/ann cannot go on: step 'greet' of greeting/ann" in result.stderr
    assert "stalled" in perdure("list").stdout
    assert "stalled   step 'greet'" in perdure("show", "greeting/ann").stdout
    again = steps + "\n\n@step\ndef welcome() -> None: ...\n"
    Path("again.py").write_text(again, encoding="utf-8")
    result = perdure("run", "greeting.json", "--app", "again.py", "--id", "ann")
    assert result.stdout == '{"said": "HELLO, ANN"}\n'


def test_an_input_that_is_too_large_is_refused() -> None:
    Path("in.json").write_text(json.dumps("x" * 5_000_000))
    result = run("greeting.json", "--input", "@in.json", code=2)
    assert "is over the limit" in result.stderr


def test_secrets_come_from_the_environment_and_are_never_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERDURE_SECRET_API_KEY", "hunter2")
    key = '{{secrets["api-key"]}}'
    write("s.json", chain("s", task("refuse", "refuse", {"text": key})))
    Path("steps.py").write_text(
        "from perdure import step\n@step\ndef refuse(text: str) -> None:\n"
        "    assert text == 'hunter2'\n    raise ValueError(f'the key is {text}')\n"
    )
    result = run("s.json", code=1)
    assert "[secret api-key]" in result.stderr
    assert result.stderr.count("ValueError: the key is [secret api-key] (steps.py:5)") == 1
    assert result.stderr.count("[secret api-key]") == 2  # as it happens, and at the end
    assert "hunter2" not in result.output
    assert "hunter2" not in perdure("show", _only_run(), "--history").output


def test_a_secret_that_is_not_set_is_told_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ["Bearer {{secrets.pay_key}}", '{{secrets["api-key"]}}']
    write("s.json", chain("s", task("shout", "shout", {"text": texts})))
    said = run("s.json", code=2).stderr
    assert "s.json: node shout reads secrets.pay_key; node shout reads secrets.api-key: " in said
    assert "set PERDURE_SECRET_PAY_KEY, PERDURE_SECRET_API_KEY in the environment" in said
    assert not Path("perdure.db").exists()
    monkeypatch.setenv("PERDURE_SECRET_PAY_KEY", "hunter2")
    assert "reads secrets.pay_key" not in run("s.json", code=2).stderr


def test_a_secret_that_a_template_can_do_without_need_not_be_set() -> None:
    optional = '{{has(secrets.greeting) ? secrets.greeting : "hello"}}'
    write("s.json", chain("s", task("shout", "shout", {"text": optional})))
    assert json.loads(run("s.json").stdout) == {"shout": "HELLO"}


def _only_run() -> str:
    found = json.loads(perdure("list", "--json").stdout)["runs"]
    assert len(found) == 1
    return f"{found[0]['workflow']}/{found[0]['id']}"


def test_http_nodes_call_only_the_hosts_that_are_allowed() -> None:
    node = {"id": "get", "type": "HTTP", "spec": {"url": "http://127.0.0.1:9/"}}
    write("h.json", {"name": "h", "nodes": [node], "edges": []})
    result = perdure("run", "h.json", "--allow-host", "api.example.com", code=1)
    assert "http-forbidden" in result.stderr


@pytest.mark.parametrize("command", [("run",), ("worker",)])
def test_requests_that_nothing_installed_could_send_are_told_before_anything_runs(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpHandler, "available", staticmethod(lambda: False))
    write("ask.json", chain("ask", {"id": "a", "type": "HTTP", "spec": {"url": "http://x.test/"}}))
    said = perdure(*command, "ask.json", code=2).stderr
    assert "ask.json: node a sends a request, which needs the extra [http]: pip install" in said
    assert not Path("perdure.db").exists()


def test_of_a_node_that_failed_in_a_process_before_the_reason_is_told_at_the_end() -> None:
    nodes = [task(step, step, {"text": "x"}) for step in ("refuse", "wait")]
    edges = [{"from": "both", "to": node["id"]} for node in nodes]
    fork = {"id": "both", "type": "FORK"}
    write("both.json", {"name": "both", "nodes": [fork, *nodes], "edges": edges})
    run("both.json", "--id", "b", "--timeout", "0.5", "--grace", "0", code=4)
    Path("go").touch()
    result = run("both.json", "--id", "b", code=1)
    assert calls().count("refuse 1") == 1
    assert "perdure: both/b failed\n  node refuse, attempt 2: unlucky: no luck today\n" in (
        result.stderr
    )
