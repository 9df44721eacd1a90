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
        (b"", "not JSON: line 1, column 1: .*; it is empty"),
        (b'{"name": "one",\n "nodes": [}', "not JSON: line 2, column 12: "),
        (b'{"name": "\xe9"}', r"not UTF-8: byte 10 \(0xe9\) does not belong there; save it as"),
        ('{"name": "é"}'.encode("utf-16"), r"not UTF-8: byte 0 \(0xff\)"),
        (b" " * (4 * 1024 * 1024 + 1), "at most 4,194,304"),
        (
            b'{"name": "One", "nodes": []}',
            "has 2 problems:\n  line 1, /name: .*\n  line 1, /nodes: ",
        ),
    ],
)
def test_a_file_that_is_no_document_is_refused_by_name(
    file: Path, content: bytes, message: str
) -> None:
    file.write_bytes(content)
    with pytest.raises(GraphError, match=message) as caught:
        Graph.read(str(file))
    assert str(caught.value).startswith(f"{file}: ")
    assert len(caught.value.problems) >= 1


def test_a_missing_file_is_said_to_be_missing(file: Path) -> None:
    with pytest.raises(GraphError, match="the file cannot be read: No such file or directory"):
        Graph.read(str(file))


@pytest.mark.parametrize("name", ["order.yaml", "order.YML"])
def test_yaml_is_not_read_and_the_message_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(GraphError, match="reads JSON and not YAML yet"):
        Graph.read(str(tmp_path / name))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="cannot be read: Is a directory"):
        Graph.read(str(tmp_path))


def test_a_path_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(GraphError, match=r"cannot be read: .*null byte"):
        Graph.read("a\0b")
