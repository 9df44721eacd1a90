"""`completion`: the shell's script, and what it asks for at a keypress."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from perdure.cli.main import main
from tests.cli.commands import GREETING, perdure, write

pytestmark = pytest.mark.usefixtures("folder")


def offered(*words: str) -> list[str]:
    """What is offered for the last word."""
    complete = ShellComplete(main, {}, "perdure", "_PERDURE_COMPLETE")
    items = complete.get_completions(list(words[:-1]), words[-1])
    return [item.value for item in items if item.type == "plain"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_asks_perdure(shell: str) -> None:
    script = perdure("completion", shell).stdout
    assert f"_PERDURE_COMPLETE={shell}_complete" in script
    document = json.loads(perdure("completion", shell, "--json").stdout)
    assert document == {"shell": shell, "script": script.removesuffix("\n")}


def test_a_shell_that_is_not_known_is_refused() -> None:
    assert "bash" in perdure("completion", "tcsh", code=2).stderr


def test_commands_and_options_are_completed() -> None:
    assert offered("def") == ["definitions"]
    assert "--where" in offered("list", "--w")
    assert offered("list", "--where", "status=f") == ["status=failed"]


def test_runs_and_workflows_of_the_store_are_completed() -> None:
    write("other.json", {**GREETING, "name": "other"})
    for file, id in (("greeting.json", "ann"), ("greeting.json", "bob"), ("other.json", "o/1")):
        perdure("start", file, "--id", id, "--input", '{"name": "x"}')
    assert offered("show", "") == ["greeting/", "other/"]
    assert offered("why", "gr") == ["greeting/bob", "greeting/ann"]
    assert offered("cancel", "greeting/a") == ["greeting/ann"]
    assert offered("signal", "other/o/") == ["other/o/1"]
    assert offered("signal", "other/o/1", "g") == []
    assert offered("definitions", "o") == ["other"]
    assert offered("start", "o") == ["other", "other.json"]
    assert offered("draw", "other/") == ["other/o/1"]
    assert offered("list", "--workflow", "g") == ["greeting"]
    assert offered("show", "none/") == []


def test_what_a_shell_would_not_take_as_it_is_is_not_offered() -> None:
    """It puts what it is offered into the command line as it stands."""
    for id in ("7;touch x", "$(touch x)", "a b", "`x`", "a|b", "*", "x\u202ey", "é-1", "a/b=c"):
        perdure("start", "greeting.json", "--id", id, "--input", '{"name": "x"}')
    write("greeting;x.json", GREETING)
    assert offered("show", "greeting/") == ["greeting/a/b=c", "greeting/é-1"]
    assert offered("start", "greeting") == ["greeting", "greeting.json"]


def test_the_store_that_is_named_is_asked() -> None:
    store = ("--store", "sqlite:///other.db")
    perdure("start", "greeting.json", "--id", "ann", *store)
    assert offered("show", *store, "greeting/") == ["greeting/ann"]
    assert offered("show", "greeting/") == []


def test_what_is_wrong_with_the_store_is_not_told_at_a_keypress() -> None:
    assert offered("show", "a/") == []
    assert not Path("perdure.db").exists()
    Path("perdure.db").write_text("no database", encoding="utf-8")
    assert offered("show", "a/") == offered("show", "") == []
    assert offered("show", "--store", "odd:", "a/") == []


def asked_for_files(*words: str) -> bool:
    """Whether the shell is asked to complete a file's name."""
    complete = ShellComplete(main, {}, "perdure", "_PERDURE_COMPLETE")
    items = complete.get_completions(list(words[:-1]), words[-1])
    return [item.type for item in items] == ["file"]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "gr"),
        ("run", "greeting.json", "--app", "st"),
        ("worker", "greeting.json", "st"),
        ("lint", ""),
        ("draw", "gr"),
        ("rehearse", "gr"),
        ("rehearse", "greeting.json", "--mock", "m"),
        ("publish", "gr"),
        ("start", "gr"),
        ("import", "runs"),
    ],
)
def test_files_are_completed_where_a_file_is_meant(words: tuple[str, ...]) -> None:
    assert asked_for_files(*words)
