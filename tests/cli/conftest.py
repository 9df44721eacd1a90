"""A folder of its own for each test of the command line, with a workflow and its steps in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import GREETING, STEPS, end_processes, forgetting, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder: greeting.json and steps.py. What is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    for name in ("PERDURE_STORE", "PERDURE_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    write("greeting.json", GREETING)
    (tmp_path / "steps.py").write_text(STEPS, encoding="utf-8")
    with forgetting(tmp_path):
        yield tmp_path
        end_processes()
