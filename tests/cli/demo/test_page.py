"""The demo's page: every line fits, nothing is lost by folding, colours only where wanted."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from perdure.cli.demo.logs import read_lines
from perdure.cli.demo.page import Page, PlainPage, RichPage, fitting, page_for

LONG = "What was under way is begun again, with the same key: the shop can tell."
HEAD = ("step", "the journal says", "the others say")
ROWS = [("charge", "done at attempt 1, begun again once", "asked twice with one key; charged once")]


def plain(width: int, *, coloured: bool = False) -> tuple[io.StringIO, Page]:
    stream = io.StringIO()
    return stream, PlainPage(stream, width, coloured=coloured)


def rich(width: int) -> tuple[io.StringIO, Page]:
    console = pytest.importorskip("rich.console", reason="the extra `cli`")
    stream = io.StringIO()
    return stream, RichPage(
        console.Console(file=stream, width=width, highlight=False, markup=False)
    )


@pytest.mark.parametrize("make", [plain, rich])
@pytest.mark.parametrize("width", [40, 60, 100])
def test_lines_and_tables_keep_every_word_and_fit(make: object, width: int) -> None:
    stream, page = make(width)  # type: ignore[operator]
    page.line((" 1.0 s", "dim"), ("  ", ""), (LONG, "green"), indent=2, hang=4)
    page.table(HEAD, ROWS, [""])
    lines = stream.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    words = stream.getvalue().split()
    for text in (LONG, *HEAD, *ROWS[0]):
        assert [word for word in text.split() if word not in words] == []


def test_the_second_line_of_a_folded_one_hangs() -> None:
    stream, page = plain(40)
    page.line((LONG, ""), indent=5, hang=2)
    first, *rest = stream.getvalue().splitlines()
    assert first.startswith("     What")
    assert rest
    assert all(line.startswith("       ") and line[7] != " " for line in rest)


def test_a_line_that_begins_with_spaces_keeps_its_place_when_it_is_folded() -> None:
    stream, page = plain(40)
    page.line(("  9.9 s", "dim"), ("  ", ""), (LONG, ""), hang=9)
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("  9.9 s  What")
    assert lines[1].startswith(" " * 9)


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for coloured in (True, False):
        stream, page = plain(80, coloured=coloured)
        page.line(("KILLED", "red"))
        assert ("\x1b[31m" in stream.getvalue()) is coloured

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("perdure.cli.demo.page.has_rich", lambda: False)
    monkeypatch.setenv("TERM", "xterm")
    for value, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        terminal = Terminal()
        page_for(terminal).line(("KILLED", "red"))
        assert ("\x1b" in terminal.getvalue()) is coloured


def test_columns_give_way_widest_first_until_they_fit() -> None:
    assert fitting(("a", "b"), [("xx", "y" * 20)], 30) == [2, 20]
    assert fitting(("a", "b"), [("x" * 12, "y" * 40)], 30) == [12, 18]
    assert fitting(("a",), [("x" * 40,)], 3) == [8]


def test_a_line_of_a_log_that_is_still_being_written_is_left_for_later(tmp_path: Path) -> None:
    log = tmp_path / "shop.log"
    assert read_lines(log) == []
    log.write_text('{"asked": "fetch"}\n{"asked": "cha', encoding="utf-8")
    assert read_lines(log) == [{"asked": "fetch"}]
