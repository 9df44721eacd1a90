"""APP: where steps are found, and every way of getting it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.cli.app import check_steps, find_apps, load_apps
from perdure.cli.exits import Trouble
from perdure.graph.definition import Graph
from perdure.model.errors import DefinitionError, DuplicateName
from tests.cli.commands import GREETING

pytestmark = pytest.mark.usefixtures("folder")


def refused(app: str) -> str:
    with pytest.raises(Trouble) as caught:
        load_apps([app])
    return caught.value.message


def names(*apps: str) -> list[str]:
    return list(load_apps(apps).steps)


@pytest.mark.parametrize("app", ["steps.py", "steps"])
def test_a_file_and_a_module_give_all_their_steps(app: str) -> None:
    assert names(app) == ["greet", "refuse", "shout", "wait"]


def test_an_attribute_gives_one_step_or_a_list() -> None:
    Path("listed.py").write_text("from steps import greet, shout\nchosen = [shout, greet]\n")
    assert names("steps:greet") == ["greet"]
    assert names("listed:chosen") == ["greet", "shout"]


def test_several_apps_are_put_together() -> None:
    assert names("steps:greet", "steps:shout") == ["greet", "shout"]


def test_the_same_file_twice_is_one() -> None:
    assert names("steps.py", "steps", "./steps.py") == ["greet", "refuse", "shout", "wait"]


def test_two_steps_of_one_name_are_refused() -> None:
    Path("other.py").write_text("from perdure import step\n@step\ndef greet(): ...\n")
    with pytest.raises(DuplicateName, match="greet"):
        load_apps(["steps.py", "other.py"])


def test_a_file_imports_what_lies_beside_it(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    (deep / "prices.py").write_text("from perdure import step\n@step\ndef price() -> int: ...\n")
    (deep / "app.py").write_text("from prices import price\n")
    assert names("deep/app.py") == ["price"]


def test_a_file_never_takes_the_place_of_a_module_in_use() -> None:
    import json

    Path("json.py").write_text("from perdure import step\n@step\ndef mine() -> int: ...\n")
    assert names("json.py") == ["mine"]
    assert __import__("json") is json


def test_the_project_says_where_the_app_is() -> None:
    Path("pyproject.toml").write_text('[tool.perdure]\napp = "steps:greet"\n')
    assert find_apps(()) == ("steps:greet",)
    assert find_apps(("mine.py",)) == ("mine.py",)
    Path("pyproject.toml").write_text('[tool.perdure]\napp = ["a", "b.py"]\n')
    assert find_apps(()) == ("a", "b.py")


@pytest.mark.parametrize("text", ["", "[tool.other]\nx = 1\n", "[project]\nname = 'x'\n"])
def test_a_project_without_an_app_has_none(text: str) -> None:
    Path("pyproject.toml").write_text(text)
    assert find_apps(()) == ()


@pytest.mark.parametrize("text", ["[tool", "[tool.perdure]\napp = [1]\n", "\xff"])
def test_a_broken_project_file_is_told(text: str) -> None:
    Path("pyproject.toml").write_text(text, encoding="latin-1")
    with pytest.raises(Trouble, match=r"pyproject\.toml"):
        find_apps(())


@pytest.mark.parametrize(
    ("app", "part"),
    [
        ("nowhere", "there is no module nowhere"),
        ("steps:nothing", "module steps has no 'nothing'"),
        ("nowhere.py", "there is no file nowhere.py"),
        ("steps:STEPS.x", "module steps has no"),
        ("", "write module:attr"),
        (":x", "write module:attr"),
        ("..x", "write module:attr"),
        ("steps:called", "is a function: name a step"),
    ],
)
def test_an_app_that_is_not_there_is_told_with_what_to_write(app: str, part: str) -> None:
    assert part in refused(app)


def test_a_module_whose_name_is_a_file_of_another_folder_gets_a_hint() -> None:
    Path("sub").mkdir()
    Path("sub/jobs.py").write_text("")
    assert "there is no module jobs" in refused("jobs")
    assert "no step or workflow at its top level: put @step" in problem("sub/jobs.py")


def problem(app: str) -> str:
    with pytest.raises(DefinitionError) as caught:
        load_apps([app])
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("x = (", "was never closed"),
        ("\n\nraise RuntimeError('not today')", "RuntimeError: not today"),
    ],
)
@pytest.mark.parametrize("app", ["broken.py", "broken"])
def test_an_app_that_cannot_be_imported_is_told_with_file_and_line(
    text: str, part: str, app: str
) -> None:
    Path("broken.py").write_text(text)
    message = refused(app)
    assert f"app {app} cannot be imported" in message
    assert part in message
    assert f"broken.py, line {text.count(chr(10)) + 1}" in message


def test_steps_that_no_app_has_are_named_with_their_nodes() -> None:
    graph = Graph.load(GREETING)
    with pytest.raises(Trouble, match="node shout calls step shout, which steps:greet does not"):
        check_steps(graph, load_apps(["steps:greet"]), ["steps:greet"], "greeting.json")


def test_without_an_app_the_file_beside_the_document_is_suggested() -> None:
    with pytest.raises(Trouble, match=r"--app steps\.py"):
        check_steps(Graph.load(GREETING), load_apps([]), [], "greeting.json")


def test_a_function_that_was_not_made_a_step_is_pointed_at() -> None:
    Path("plain.py").write_text("from steps import greet\n\ndef shout(text):\n    pass\n")
    with pytest.raises(Trouble, match=r"\(it has: greet\); write @step before def shout"):
        check_steps(Graph.load(GREETING), load_apps(["plain.py"]), ["plain.py"], "greeting.json")


def test_options_of_a_step_that_cannot_be_are_told_where_they_stand() -> None:
    Path("odd.py").write_text('from perdure import step\n\n@step(retry="x")\ndef a():\n    pass\n')
    message = refused("odd.py")
    assert "retry attempts 'x'" in message
    assert message.endswith("odd.py, line 3)")
