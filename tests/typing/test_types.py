"""What type checkers say about programs that use perdure: right ones pass, mistakes are found.

A program's lines that end in `# E` must be errors, and no other line may be one. mypy is part of
the development tools; pyright is asked too where it is installed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

PROGRAMS = ROOT / "tests" / "typing" / "programs"
DESIGN = ROOT.parent / "shared" / "design" / "api" / "programs"
#: Programs of the design that use only what is built.
BUILT = ("p08_graph.py",)

pytestmark = pytest.mark.slow


def wanted(path: Path) -> set[int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if re.search(r"# E(?:$|[ :])", line)}


def by_mypy(path: Path) -> set[int]:
    options = ["--strict", "--no-error-summary", "--no-pretty", "--enable-error-code"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "unused-coroutine", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return lines_in(path, done.stdout.splitlines())


def lines_in(path: Path, said: Iterable[str]) -> set[int]:
    """Numbers of the lines of `path` with errors; errors elsewhere fail the test."""
    found = [re.match(r"(.+?):(\d+): error: ", line) for line in said]
    errors = [match for match in found if match]
    elsewhere = [match.string for match in errors if not path.samefile(ROOT / match[1])]
    assert elsewhere == []
    return {int(match[2]) for match in errors}


def by_pyright(path: Path) -> set[int]:
    config = PROGRAMS / "pyrightconfig.json"
    done = subprocess.run(
        ["pyright", "--outputjson", "--project", str(config), "--pythonpath", sys.executable],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {
        item["range"]["start"]["line"] + 1
        for item in found
        if item["severity"] == "error" and Path(item["file"]) == path
    }


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.py")), ids=lambda path: path.name)
def test_mypy_finds_exactly_the_mistakes(path: Path) -> None:
    assert by_mypy(path) == wanted(path)


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.py")), ids=lambda path: path.name)
def test_pyright_finds_exactly_the_mistakes(path: Path) -> None:
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed: types were not checked by it")
    assert by_pyright(path) == wanted(path)


@pytest.mark.parametrize("name", BUILT)
def test_the_design_s_programs_type_check_as_they_stand(name: str) -> None:
    path = DESIGN / name
    if not path.exists():
        pytest.skip("the design pages do not lie beside this tree: their programs not checked")
    assert by_mypy(path) == wanted(path)
