"""Committed files speak of the project alone."""

from __future__ import annotations

import pytest

from tests.tidy.tree import ROOT, files
from tests.tidy.words import unwanted


def test_no_file_holds_an_unwanted_word() -> None:
    problems = [
        problem
        for path in files()
        if path.name != ".git"  # a worktree's: a file, and not a committed one
        for problem in unwanted(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert problems == []


@pytest.mark.parametrize(
    "line",
    [
        "/ho" + "me/ann/x.db",
        "see /ro" + "ot/x",
        "'/wo" + "rk/x'",
        "# TO" + "DO: later",
        "FIX" + "ME",
    ],
)
def test_an_unwanted_word_is_caught(line: str) -> None:
    (problem,) = unwanted("a.md", f"fine\n{line}\n")
    assert problem.startswith("a.md:2: ")


@pytest.mark.parametrize(
    "line", ["TO" + "DO(#12): later", "tests/work/x", "https://a.b/work", "the root/x"]
)
def test_an_innocent_line_passes(line: str) -> None:
    assert unwanted("a.md", line) == []
