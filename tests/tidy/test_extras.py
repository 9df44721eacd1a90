"""The package works with its three dependencies alone; extras are looked for only when needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tidy.tree import ROOT

EXTRAS = (
    *("aiohttp", "fastjsonschema", "opentelemetry", "pysqlite3", "rich", "yaml"),
    *("hypothesis", "pytest"),
)
ENTRANCES = ("perdure", "perdure.cli.main")


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_importing_needs_no_extra_and_says_nothing(entrance: str) -> None:
    if not (ROOT / "src" / f"{entrance.replace('.', '/')}.py").exists() and entrance != "perdure":
        pytest.skip(f"{entrance} is not there yet")
    block = "".join(f"sys.modules[{name!r}] = None; " for name in EXTRAS)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import sys; {block}import {entrance}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
