"""The import contracts hold on this tree, and each bites when a violation is planted.

`lint-imports` runs on a small package of the same name, so the contracts are tested as written.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

FLOORS = ("cli", "client", "engine", "graph", "stores", "codec", "kernel", "expr", "model")
SKELETON = {
    **{f"{floor}/__init__.py": "" for floor in FLOORS},
    "kernel/apply.py": "import msgspec\nimport perdure.model\n",
    "engine/__init__.py": "",
    "engine/worker.py": "import asyncio\nimport perdure.stores.port\nimport perdure.kernel.apply\n",
    "stores/port.py": "import perdure.codec\n",
    "stores/memory.py": "import perdure.stores.port\n",
    "stores/sqlite/__init__.py": "import perdure.stores.port\n",
    # The contract names these exceptions and fails when they are gone.
    "model/step_context.py": "import logging\n",
    "kernel/code/__init__.py": "",
    "kernel/code/loop.py": "import asyncio\n",
}


def lint(folder: Path, planted: dict[str, str]) -> str:
    """Run the project's contracts over the skeleton plus the planted files."""
    for name, text in {"__init__.py": "", **SKELETON, **planted}.items():
        path = folder / "perdure" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copy(ROOT / ".importlinter", folder)
    return run(folder)


def run(folder: Path) -> str:
    code = "import sys; from importlinter.cli import lint_imports_command as main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache", "--no-logo"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout


def test_a_clean_skeleton_passes(tmp_path: Path) -> None:
    out = lint(tmp_path, {})
    assert "BROKEN" not in out
    assert "5 kept, 0 broken" in out


@pytest.mark.parametrize(
    ("planted", "contract"),
    [
        ({"model/names.py": "import perdure.kernel.apply\n"}, "floors"),
        ({"kernel/cel.py": "import perdure.expr\n"}, "floors"),
        ({"engine/clock.py": "import perdure.client\n"}, "floors"),
        ({"attic/__init__.py": ""}, "floors"),
        ({"kernel/clock.py": "import time\n"}, "pure"),
        ({"codec/log.py": "import logging\n"}, "pure"),
        ({"engine/lane.py": "import perdure.graph\n"}, "ports"),
        ({"engine/ids.py": "import perdure.stores.memory\n"}, "ports"),
        ({"engine/runs.py": "import perdure.engine.worker\n"}, "rooms"),
        ({"engine/cellar.py": ""}, "rooms"),
        ({"stores/port.py": "import perdure.stores.sqlite\n"}, "stores"),
        ({"stores/rows.py": "import perdure.stores.port\n"}, "stores"),
        ({"stores/memory.py": "import perdure.stores.sqlite\n"}, "stores"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_planted_violation_breaks_its_contract(
    tmp_path: Path, planted: dict[str, str], contract: str
) -> None:
    names = {
        "floors": "Imports only point down the floors",
        "pure": "Pure floors reach no clock, chance, process, network, disk or foreign package",
        "ports": "The engine knows no door and no concrete store",
        "rooms": "The engine's rooms know only what is below them",
        "stores": "Stores know the port and not one another",
    }
    assert f"{names[contract]} BROKEN" in lint(tmp_path, planted)
