"""The store works the same on the standard library's sqlite3, whose module and version differ."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.stores.sqlite.driver import sqlite3
from tests.tidy.tree import ROOT


@pytest.mark.slow
def test_the_conformance_suite_holds_without_pysqlite3(tmp_path: Path) -> None:
    if not sqlite3.__name__.startswith("pysqlite3"):
        pytest.skip("pysqlite3 is not installed: every other test ran on the standard library's")
    hidden = tmp_path / "pysqlite3"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("raise ImportError('hidden')\n")
    code = (
        "import sys, pytest, perdure.stores.sqlite.driver as d; "
        "assert d.sqlite3.__name__ == 'sqlite3', d.sqlite3; "
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "-q", "-m", "not slow",
             # perdure is there before pytest, which would rewrite it for its plugin.
             "-W", "ignore::pytest.PytestAssertRewriteWarning",
         "-k", "sqlite", "tests/conformance/store", "tests/unit/stores"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
