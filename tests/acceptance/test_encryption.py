"""The example of a codec that encrypts, followed as its page says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

FOLDER = ROOT / "examples" / "encryption"

pytest.importorskip("cryptography", reason="the example of encryption needs cryptography")
pytestmark = pytest.mark.slow


def python(*words: str, folder: Path, **more: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_was_paid_with_cannot_be_found_in_the_database(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    made = python("-c", "import sealed; print(sealed.key())", folder=tmp_path).strip()
    said = python("buy.py", folder=tmp_path, CARD_KEY=made)
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "confirmed by Ann\nthe card's number is in the database: False\n" in said
    assert f"$ python buy.py\n{said}```" in page
