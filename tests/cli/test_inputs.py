"""Values on the command line: JSON text, @file, standard input, and what is wrong with them."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from perdure.cli.exits import USAGE, Trouble
from perdure.cli.inputs import read_config, read_value, typed
from perdure.cli.options import RunName, RunNameType


def refused(text: str) -> str:
    with pytest.raises(Trouble) as caught:
        read_value(text, "--input")
    assert caught.value.exit_code == USAGE
    return caught.value.message


def test_an_option_that_was_not_given_is_none() -> None:
    assert read_value(None, "--input") is None


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ('{"a": [null, "é"]}', {"a": [None, "é"]}), ('"x"', "x")]
)
def test_json_text_is_its_value(text: str, value: object) -> None:
    assert read_value(text, "--input") == value


def test_a_file_is_read_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_value(f"@{file}", "--input") == {"a": 1}


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"[1]")))
    assert read_value("-", "--input") == [1]


def test_what_is_not_json_is_told_with_its_place_and_surroundings() -> None:
    message = refused('{"a": 1,\n "b": x}')
    assert "--input is not JSON: line 2, column 7" in message
    assert '"b": x}' in message


def test_the_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text("{", encoding="utf-8")
    assert f"{tmp_path}/in.json is not JSON: line 1, column 2" in refused(f"@{tmp_path}/in.json")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path}/none.json cannot be read" in refused(f"@{tmp_path}/none.json")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in refused(f"@{tmp_path}/in.json")


@pytest.mark.parametrize(
    ("text", "hint"),
    [("in.json", "to read that file write @in.json"), ("Ann", "'\"Ann\"'"), ("", "it is empty")],
)
def test_what_was_probably_meant_is_suggested(text: str, hint: str) -> None:
    assert hint in refused(text)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
def test_numbers_that_json_does_not_have_are_refused(text: str) -> None:
    assert "JSON has no" in refused(text)


@pytest.mark.parametrize("text", ['"\\ud800"', '{"a": ["\\udfff"]}', '{"\\ud800": 1}', '"\udcff"'])
def test_half_a_character_is_refused_before_anything_is_started(text: str) -> None:
    assert "half a character" in refused(text)


def test_what_was_typed_as_utf8_is_read_as_such_whatever_the_locale(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.fsencode", lambda text: text.encode("ascii", "surrogateescape"))
    came = "é/✓".encode().decode("ascii", "surrogateescape")
    assert read_value(f'"{came}"', "--input") == "é/✓"
    named: RunName = RunNameType().convert(f"order/{came}", None, None)
    assert named == ("order", "é/✓")
    assert typed("é") == "é"  # out of a file, not off the command line


def test_a_config_that_is_no_object_is_refused() -> None:
    assert read_config('{"a": 1}') == {"a": 1}
    assert read_config(None) is None
    with pytest.raises(Trouble, match="not a JSON object"):
        read_config("[]")
