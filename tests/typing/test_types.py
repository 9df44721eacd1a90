"""What type checkers say about programs that use perdure: right ones pass, mistakes are found.

A program's lines that end in `# E` must be errors, and no other line may be one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.tree import ROOT
from tests.typing.checkers import by_mypy, by_pyright, pyright, wanted

PROGRAMS = sorted((ROOT / "tests" / "typing" / "programs").glob("*.py"))

pytestmark = pytest.mark.slow


def test_mypy_finds_exactly_the_mistakes() -> None:
    assert by_mypy(PROGRAMS) == {path: wanted(path) for path in PROGRAMS}


def test_pyright_finds_exactly_the_mistakes(tmp_path: Path) -> None:
    if pyright() is None:
        pytest.skip("pyright is not installed: types were not checked by it")
    assert by_pyright(PROGRAMS, tmp_path) == {path: wanted(path) for path in PROGRAMS}
