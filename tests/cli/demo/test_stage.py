"""What the demo tells people to type must be there when they type it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.cli.demo import stage


def test_perdure_is_called_by_its_name_alone_where_the_shell_finds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stage.shutil, "which", lambda name: f"/bin/{name}")
    assert stage.command() == "perdure"


@pytest.mark.parametrize("beside", [True, False])
def test_elsewhere_it_is_called_in_a_way_that_works_from_any_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, beside: bool
) -> None:
    monkeypatch.setattr(stage.shutil, "which", lambda name: None)
    if not beside:
        python = tmp_path / "python"
        python.symlink_to(sys.executable)
        monkeypatch.setattr(sys, "executable", str(python))
        assert stage.command() == f"{python} -m perdure"
        return
    words = [*shlex.split(stage.command()), "--version"]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("perdure ")
