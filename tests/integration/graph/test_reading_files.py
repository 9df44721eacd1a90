"""Graph.read: a document in a file, and every way in which a file disappoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.graph import Graph
from perdure.model.errors import GraphError

DOCUMENT = {"name": "one", "nodes": [{"id": "a", "type": "FORK"}]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "one.json"


def test_a_file_is_the_document_in_it(file: Path) -> None:
    file.write_text(json.dumps(DOCUMENT, indent=2), encoding="utf-8")
    assert Graph.read(str(file)).hash == Graph.load(DOCUMENT).hash


def test_a_byte_order_mark_does_no_harm(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(DOCUMENT).encode())
    assert Graph.read(str(file)).name == "one"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ":1:1: the document is not JSON: .*; it is empty"),
        (b'{"name": "one",\n "nodes": [}', ":2:12: the document is not JSON: "),
        (b'{"name": "\xe9"}', r"not UTF-8: byte 10 \(0xe9\) does not belong there; save it as"),
        ('{"name": "é"}'.encode("utf-16"), r"not UTF-8: byte 0 \(0xff\)"),
        (b" " * (4 * 1024 * 1024 + 1), "at most 4,194,304"),
        (
            b'{"name": "One", "nodes": []}',
            r"has 2 problems:\n  .*one\.json:1:10: /name: .*\n  .*one\.json:1:17: /nodes: ",
        ),
    ],
)
def test_a_file_that_is_no_document_is_refused_by_name(
    file: Path, content: bytes, message: str
) -> None:
    file.write_bytes(content)
    with pytest.raises(GraphError, match=message) as caught:
        Graph.read(str(file))
    assert str(caught.value).startswith(f"{file}:")
    assert len(caught.value.problems) >= 1


def test_a_missing_file_is_said_to_be_missing(file: Path) -> None:
    with pytest.raises(GraphError, match="the file cannot be read: No such file or directory"):
        Graph.read(str(file))


@pytest.mark.parametrize("name", ["one.yaml", "one.YML"])
def test_a_file_of_that_name_is_read_as_yaml(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("name: one\nnodes: [{id: a, type: FORK}]\n", encoding="utf-8")
    assert Graph.read(tmp_path / name).hash == Graph.load(DOCUMENT).hash


def test_problems_of_a_yaml_file_are_told_by_file_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text("name: one\nnodes:\n  - {id: a, typ: FORK}\n", encoding="utf-8")
    with pytest.raises(GraphError) as caught:
        Graph.read(file)
    assert f"\n  {file}:3:13: /nodes/0/typ (node a): " in str(caught.value)
    file.write_text("name: one\nnodes: {{input.nodes}}\n", encoding="utf-8")
    with pytest.raises(GraphError) as caught:
        Graph.read(file)
    assert str(caught.value).startswith(f"{file}:2:8: a template is not in quotes")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="cannot be read: Is a directory"):
        Graph.read(str(tmp_path))


def test_a_path_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(GraphError, match=r"cannot be read: .*null byte"):
        Graph.read("a\0b")
