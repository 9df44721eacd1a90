"""Lettering: text is measured generously and cut to fit."""

from __future__ import annotations

import pytest

from perdure.graph.draw.lettering import fitting, width


def test_what_fits_is_left_as_it_is_on_one_line() -> None:
    assert fitting("a  b\n c", 10, 100) == "a b c"


@pytest.mark.parametrize("text", ["a" * 300, "W" * 300, "注文" * 100, "🙂" * 100, "a b " * 80])
@pytest.mark.parametrize("bold", [True, False])
def test_what_is_cut_fits_with_its_dots(text: str, bold: bool) -> None:
    cut = fitting(text, 11, 90, bold=bold)
    assert cut.endswith("…")
    assert 60 < width(cut, 11, bold=bold) <= 90


def test_wide_signs_are_wide_and_accents_are_nothing() -> None:
    assert width("注", 10) > width("M", 10) > width("i", 10)
    assert width("e\u0301", 10) == width("e", 10)
