"""The programs of the design's pages type-check against the product: as they stand where all they
use is built, else less what is not (tests/typing/later.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.tree import ROOT
from tests.typing.checkers import Found, by_mypy, by_pyright, pyright, wanted
from tests.typing.later import CUTS, without

DESIGN = ROOT.parent / "shared" / "design" / "api" / "programs"

pytestmark = pytest.mark.slow


def programs(folder: Path) -> list[Path]:
    """Where the programs lie; what is cut is cut in a copy, in `folder`."""
    if not DESIGN.exists():
        pytest.skip("the design pages do not lie beside this tree: their programs not checked")
    found = []
    for path in sorted(DESIGN.glob("*.py")):
        if path.name in CUTS:
            copy = folder / path.name
            copy.write_text(without(path.name, path.read_text(encoding="utf-8")), encoding="utf-8")
            found.append(copy)
        else:
            found.append(path)
    return found


def expected(paths: list[Path]) -> Found:
    return {path: wanted(path) for path in paths}


def test_mypy_finds_what_the_design_says_it_finds(tmp_path: Path) -> None:
    paths = programs(tmp_path)
    assert by_mypy(paths) == expected(paths)


def test_pyright_finds_what_the_design_says_it_finds(tmp_path: Path) -> None:
    paths = programs(tmp_path)
    if pyright() is None:
        pytest.skip("pyright is not installed: the design's programs were not checked by it")
    assert by_pyright(paths, tmp_path) == expected(paths)


def test_what_is_left_out_is_not_there_yet() -> None:
    if not DESIGN.exists():
        pytest.skip("the design pages do not lie beside this tree: their programs not checked")
    whole = [DESIGN / name for name in CUTS]
    found = by_mypy(whole)
    assert [path.name for path in whole if not found[path]] == []
