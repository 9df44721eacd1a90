"""`perdure draw`: documents, published workflows and runs, as Mermaid and as SVG."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.commands import GREETING, perdure, run, write

pytestmark = pytest.mark.usefixtures("folder")


def test_a_document_is_drawn_as_mermaid_unless_told_otherwise() -> None:
    result = perdure("draw", "greeting.json")
    assert result.stdout.startswith("flowchart TD\n")
    assert "greet --> shout" in result.stdout


def test_the_name_of_the_output_says_the_format() -> None:
    result = perdure("draw", "greeting.json", "-o", "greeting.svg")
    assert (result.stdout, result.stderr) == ("", "greeting.svg is written\n")
    assert ET.parse("greeting.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert perdure("draw", "greeting.json", "-f", "svg").stdout == Path("greeting.svg").read_text(
        encoding="utf-8"
    )


def test_a_document_is_drawn_from_standard_input() -> None:
    assert "greet --> shout" in perdure("draw", "-", input=json.dumps(GREETING)).stdout
    text = "name: two\nnodes: [{id: a, type: FORK}, {id: b, type: JOIN}]\nedges: [{from: a, to: b}]"
    assert "n_a --> n_b" in perdure("draw", "-", input=text).stdout


def test_a_run_is_drawn_as_it_went_and_a_workflow_as_it_is() -> None:
    run("greeting.json", "--id", "g-1", "--input", '{"name": "Ann"}')
    write("greeting.json", {"name": "greeting"})  # the run keeps what it was started with
    drawn = perdure("draw", "greeting/g-1").stdout
    assert "greet ==> shout" in drawn
    assert "class greet,shout is_completed" in drawn
    assert "completed · version" in perdure("draw", "greeting/g-1", "-f", "svg").stdout
    assert "greet --> shout" in perdure("draw", "greeting").stdout


def test_json_holds_the_drawing_or_where_it_was_written() -> None:
    told = json.loads(perdure("draw", "greeting.json", "--json").stdout)
    assert (told["workflow"], told["format"]) == ("greeting", "mermaid")
    assert told["drawing"].startswith("flowchart TD\n")
    told = json.loads(perdure("draw", "greeting.json", "-o", "a.svg", "--json").stdout)
    assert (told["format"], told["file"]) == ("svg", "a.svg")
    assert "drawing" not in told


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nothing.json"], 2, "nothing.json: the file cannot be read"),
        (["nothing"], 5, "there is no file nothing, and there is no database perdure.db"),
        (["greeting.json", "-f", "png"], 2, "'png' is not one of 'mermaid', 'svg'"),
        (["greeting.json", "-o", "no/where.svg"], 2, "no/where.svg cannot be written: No such"),
    ],
)
def test_what_cannot_be_drawn_is_told(words: list[str], code: int, said: str) -> None:
    assert said in perdure("draw", *words, code=code).stderr


def test_a_run_or_workflow_that_is_not_there_is_told() -> None:
    run("greeting.json", "--id", "g-1", "--input", '{"name": "Ann"}')
    for what, said in (
        ("greeting/other", "there is no file greeting/other, and "),
        ("other", "there is no file other, and "),
    ):
        assert said in perdure("draw", what, code=3).stderr


def test_a_picture_of_another_kind_is_refused_with_what_there_is() -> None:
    said = perdure("draw", "greeting.json", "-o", "greeting.PNG", code=2).stderr
    assert said.startswith("perdure: greeting.PNG: drawings are SVG or Mermaid, not PNG: write ")
    assert "greeting.svg" in said
    assert not Path("greeting.PNG").exists()
