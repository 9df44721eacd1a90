"""A folder of its own for each test of the command line, with a workflow and its steps in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import GREETING, STEPS, end_processes, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder: greeting.json and steps.py. What is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    for name in ("PERDURE_STORE", "PERDURE_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    write("greeting.json", GREETING)
    (tmp_path / "steps.py").write_text(STEPS, encoding="utf-8")
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    end_processes()
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(tmp_path)):
            del sys.modules[name]
