"""Workflows in Python on the command line: run, joined, told things, explained, retried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import calls, chain, perdure, task, write
from tests.cli.programs import HELLO, ONE, changed

pytestmark = pytest.mark.usefixtures("program")


@pytest.fixture
def program(folder: Path) -> Path:
    """hello.py with one workflow, many.py with three."""
    (folder / "hello.py").write_text(ONE, encoding="utf-8")
    (folder / "many.py").write_text(HELLO, encoding="utf-8")
    return folder


def forget(name: str) -> None:
    """The next command imports the file anew, as another process would."""
    import sys

    sys.modules.pop(name, None)


def stop_waiting(file: str = "hello.py", *words: str) -> None:
    perdure("run", file, "--id", "ann", *words, "--timeout", "0.4", code=4)


def test_a_workflow_in_a_file_is_run_waits_and_goes_on_when_its_signal_has_come() -> None:
    stop_waiting("hello.py", "--input", '"ann@x"')
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"')
    result = perdure("run", "hello.py", "--id", "ann")
    assert result.stdout == '"done"\n'
    assert "goes on from wait:confirmed: 1 call is recorded, and not done again" in result.stderr
    assert calls() == ["mail 1", "mail 1"]
    assert "has already completed" in perdure("run", "hello.py", "--id", "ann").stderr


def test_what_it_waits_for_is_told_with_the_whole_command() -> None:
    result = perdure(
        "run", "hello.py", "--id", "ann", "--input", '"a"', "--timeout", "0.4", code=4
    )  # fmt: skip
    assert "(perdure signal sign-up/ann confirmed JSON)" in result.stderr
    said = perdure("why", "sign-up/ann").stdout
    assert "wait:confirmed  waits for signal confirmed, for" in said
    assert "-> perdure signal sign-up/ann confirmed JSON\n" in said
    said = perdure("why", "sign-up/ann", "--store", "sqlite:///./perdure.db").stdout
    assert "sign-up/ann confirmed JSON --store sqlite:///./perdure.db\n" in said


@pytest.mark.parametrize(
    "word", ["many.py:sign_up", "many.py:sign-up", "many:sign_up", "hello", "hello:sign-up"]
)
def test_a_workflow_is_named_by_its_file_or_module_and_its_own_name(word: str) -> None:
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"', code=5)  # no store yet
    perdure("start", "hello.py", "--id", "ann", "--input", '"a"')
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"')
    assert perdure("run", word, "--id", "ann").stdout == '"done"\n'


def test_a_name_is_looked_up_in_the_app_of_the_project() -> None:
    Path("pyproject.toml").write_text('[tool.perdure]\napp = "many.py"\n', encoding="utf-8")
    started = perdure("start", "sign-up", "--id", "ann", "--input", '"a"')
    assert started.stdout == "sign-up/ann\n"
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"')
    assert perdure("run", "sign-up", "--id", "ann").stdout == '"done"\n'


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("many.py", "many.py:sign-up, many.py:unlucky, many.py:chooser, many.py:parent"),
        ("hello.py:mail", "is no workflow"),
        ("hello.py:nix", "module hello has no 'nix' (it has: mail, refuse, sign-up)"),
        ("steps.py", "steps.py holds no workflow: put @workflow(max_duration=…)"),
        ("nothing.py", "there is no file nothing.py"),
        ("nothing", "there is no file nothing and no module"),
        ("nothing.json", "nothing.json"),
    ],
)
def test_what_is_no_workflow_is_told_with_what_there_is(word: str, said: str) -> None:
    assert said in perdure("run", word, code=2).stderr
    assert not Path("perdure.db").exists()


@pytest.mark.parametrize("option", ["--start-node", "--config"])
def test_what_only_documents_have_is_refused(option: str) -> None:
    value = "mail" if option == "--start-node" else "{}"
    result = perdure("run", "hello.py", "--input", '"a"', option, value, code=2)
    assert f"{option} is for documents" in result.stderr


@pytest.mark.parametrize("command", ["lint", "publish", "rehearse"])
def test_what_is_for_documents_says_so_of_python(command: str) -> None:
    assert (
        "hello.py is Python: this is about documents" in perdure(command, "hello.py", code=2).stderr
    )


def test_a_run_of_code_is_not_drawn_and_that_is_said() -> None:
    stop_waiting("hello.py", "--input", '"a"')
    assert "perdure show sign-up/ann" in perdure("draw", "sign-up/ann", code=2).stderr


def test_show_lists_the_calls_in_order_and_in_words() -> None:
    perdure("run", "many.py:chooser", "--id", "c", "--timeout", "0.4", code=4)
    rows = _rows("chooser/c")
    assert [row[0] for row in rows] == ["select.0", "select.1", "select.2"]
    assert rows[0][4] == "waits for signal confirmed (case 1 of the select)"
    assert rows[2][4].startswith("waits until ")
    perdure("cancel", "chooser/c")
    result = perdure("run", "many.py:chooser", "--id", "c", code=1)
    assert "the run is to end: workflow.canceled: cancelled" in result.stderr
    assert "~grace  may clean up until " in result.stderr
    assert [row[0] for row in _rows("chooser/c")] == [
        "select.0", "select.1", "select.2", "mail", "~grace",
    ]  # fmt: skip
    assert _rows("chooser/c")[0][4] == "given up by the code"
    assert calls() == ["mail 1"]


def _rows(name: str) -> list[list[str]]:
    lines = perdure("show", name).stdout.partition("\n\n")[2].splitlines()
    starts = [lines[0].index(title) for title in ("NODE", "STATUS", "ATTEMPT", "TOOK", "OUTPUT")]
    ends = [*starts[1:], None]
    return [[line[a:b].strip() for a, b in zip(starts, ends, strict=True)] for line in lines[1:]]


def test_a_failure_names_the_call_that_ended_the_run_and_not_those_the_code_dealt_with() -> None:
    result = perdure("run", "many.py:unlucky", "--id", "u", code=1)
    told = result.stderr.partition("perdure: unlucky/u failed\n")[2]
    assert "node refuse, attempt 2: unlucky: no luck today" in told
    assert "wait:confirmed" not in told
    assert "attempt 1: unlucky: no luck today" in perdure("why", "unlucky/u").stdout


def test_a_retry_needs_the_code_and_does_again_what_failed() -> None:
    told = perdure("run", "many.py:unlucky", "--id", "u", code=1).stderr
    assert ": perdure retry unlucky/u --app many.py:unlucky && perdure run many.py" in told
    said = perdure("why", "unlucky/u").stdout
    assert "done again by: perdure retry unlucky/u --app FILE.py\n" in said
    assert "say where its code is" in perdure("retry", "unlucky/u", code=2).stderr
    missing = perdure("retry", "unlucky/u", "--app", "hello.py", code=2).stderr
    assert "unlucky is a workflow in Python, which hello.py does not have" in missing
    Path("mended").touch()
    perdure("retry", "unlucky/u", "--app", "many.py:unlucky")
    assert perdure("run", "many.py:unlucky", "--id", "u").stdout == '"at last"\n'
    assert calls() == ["mail 1", "refuse 1", "refuse 2", "refuse 1"]


def test_a_retry_from_a_call_does_that_one_again_and_what_came_after_it() -> None:
    perdure("start", "hello.py", "--id", "ann", "--input", '"a"')
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"')
    perdure("run", "hello.py", "--id", "ann")
    perdure("retry", "sign-up/ann", "--from", "mail#2", "--app", "hello.py")
    assert perdure("run", "hello.py", "--id", "ann").stdout == '"done"\n'
    assert calls() == ["mail 1", "mail 1", "mail 1"]
    wrong = perdure("retry", "sign-up/ann", "--from", "mial", "--app", "hello.py", code=2)
    assert "the run made no call mial" in wrong.stderr


def test_code_that_does_something_else_stalls_the_run_and_both_are_shown() -> None:
    stop_waiting("hello.py", "--input", '"a"')
    kept = Path("hello.py").read_text(encoding="utf-8")
    other = changed('await mail(email, "please confirm")', 'await mail(email, "confirm, please")')
    Path("hello.py").write_text(other, encoding="utf-8")
    forget("hello")
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"')
    perdure("run", "hello.py", "--id", "ann", code=1)
    for command in ("why", "show"):
        lines = [line.strip() for line in perdure(command, "sign-up/ann").stdout.splitlines()]
        assert 'recorded   mail({"to":"a","text":"please confirm"})' in lines
        assert 'asked now  mail({"to":"a","text":"confirm, please"})' in lines
    Path("hello.py").write_text(kept, encoding="utf-8")
    forget("hello")
    assert perdure("run", "hello.py", "--id", "ann").stdout == '"done"\n'
    assert calls() == ["mail 1", "mail 1"]


def test_a_stalled_run_is_cancelled_without_its_code_and_why_says_so() -> None:
    stop_waiting("hello.py", "--input", '"a"')
    Path("hello.py").write_text(changed("please confirm", "other"), encoding="utf-8")
    forget("hello")
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"')
    perdure("run", "hello.py", "--id", "ann", code=1)
    said = perdure("why", "sign-up/ann").stdout
    assert "or end it without running its code: perdure cancel sign-up/ann" in said
    perdure("cancel", "sign-up/ann", "--reason", "enough")
    ended = "enough; ended without its code, which could not go on: nothing was cleaned up"
    assert ended in perdure("run", "hello.py", "--id", "ann", code=1).stderr
    said = perdure("why", "sign-up/ann").stdout
    assert ended in said
    assert 'recorded   mail({"to":"a","text":"please confirm"})' in said
    assert calls() == ["mail 1"]


def test_a_run_that_is_stalled_is_told_of_once() -> None:
    stop_waiting("hello.py", "--input", '"a"')
    Path("hello.py").write_text(changed("please confirm", "other"), encoding="utf-8")
    forget("hello")
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"')
    told = perdure("run", "hello.py", "--id", "ann", code=1).stderr
    assert told.count("  recorded   ") == 1
    assert "waiting for sign-up/ann" not in told


def test_a_run_is_watched_and_its_result_printed() -> None:
    perdure("start", "hello.py", "--id", "ann", "--input", '"a"')
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"')
    perdure("run", "hello.py", "--id", "ann")
    assert perdure("watch", "sign-up/ann").stdout == '"done"\n'
    assert perdure("result", "sign-up/ann").stdout == '"done"\n'
    shown = json.loads(perdure("show", "sign-up/ann", "--json").stdout)
    assert [node["node"] for node in shown["nodes"]] == ["mail", "wait:confirmed", "mail#2"]


def test_the_run_that_another_waits_for_is_named_with_what_to_ask() -> None:
    perdure("run", "many.py:parent", "--id", "p", "--timeout", "0.5", code=4)
    assert _rows("parent/p")[0][4] == "waits for run sign-up/s"
    said = perdure("why", "parent/p").stdout
    assert "sign-up  waits for run sign-up/s, for " in said
    assert "-> perdure why sign-up/s" in said
    perdure("signal", "sign-up/s", "confirmed", '"Ann"')
    result = perdure("run", "many.py:parent", "--id", "p")
    assert result.stdout == '"child: done"\n'
    assert "sign-up  waits for run sign-up/s" in result.stderr


def test_the_store_lists_its_version_and_says_that_code_has_no_document() -> None:
    stop_waiting("hello.py", "--input", '"a"')
    known = json.loads(perdure("definitions", "--json").stdout)["definitions"]
    assert [(one["name"], one["kind"], one["running"]) for one in known] == [
        ("sign-up", "workflow", 1)
    ]
    assert "is made by code" in perdure("definitions", "sign-up", "--source", code=3).stderr
    wanted = perdure("start", "sign-up", "--version", "1", code=2).stderr
    assert "say where its code is" in wanted


def test_a_workflow_that_the_store_knows_is_started_by_its_name_without_its_code() -> None:
    stop_waiting("hello.py", "--input", '"a"')
    started = perdure("start", "sign-up", "--input", '"b"', "--id", "b")
    assert started.stdout == "sign-up/b\n"
    assert "perdure worker FILE.py is one" in started.stderr
    perdure("signal", "sign-up/b", "confirmed", '"Bea"')
    assert json.loads(perdure("run", "hello.py", "--id", "b").stdout) == "done"


def test_a_run_is_exported_and_imported_and_goes_on_in_another_store() -> None:
    stop_waiting("hello.py", "--input", '"a"')
    perdure("export", "sign-up/ann", "--running", "-o", "runs.jsonl")
    store = ("--store", "sqlite:///other.db")
    perdure("import", "runs.jsonl", *store)
    perdure("unpause", "sign-up/ann", *store)
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"', *store)
    assert perdure("run", "hello.py", "--id", "ann", *store).stdout == '"done"\n'
    assert calls() == ["mail 1", "mail 1"]


def test_the_doctor_finds_a_stalled_workflow() -> None:
    stop_waiting("hello.py", "--input", '"a"')
    Path("hello.py").write_text(changed("please confirm", "other"), encoding="utf-8")
    forget("hello")
    perdure("signal", "sign-up/ann", "confirmed", '"Ann"')
    perdure("run", "hello.py", "--id", "ann", code=1)
    told = json.loads(perdure("doctor", "--json").stdout)
    (stalled,) = [one for one in told["checks"] if one["topic"] == "stalled"]
    assert stalled["level"] == "warn"
    assert "sign-up/ann" in stalled["text"]


def test_a_document_may_stand_beside_workflows_of_the_same_app() -> None:
    document: Any = chain("letter", task("send", "mail", {"to": "bob", "text": "hi"}))
    write("letter.json", document)
    result = perdure("run", "letter.json", "--app", "many.py", "--id", "l")
    assert json.loads(result.stdout) == {"send": None}
