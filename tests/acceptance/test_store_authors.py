"""What the page for authors of stores tells them to write and type works as it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.conformance import Capabilities
from tests.tidy.tree import ROOT

PAGE = ROOT / "docs" / "howto" / "stores.md"

#: A store of somebody else's: the runs of a place live as long as this process.
SHELF = """
from perdure import Unsupported
from perdure.stores.memory import MemoryStore

PLACES = {}


class ShelfStore(MemoryStore):
    def __new__(cls, folder):
        return PLACES.setdefault(folder, super().__new__(cls))

    def __init__(self, folder):
        if not hasattr(self, "folder"):
            super().__init__()
            self.folder = folder

    def drop_session(self, worker):
        self.crash(worker)

    def subscribe(self, call, posted=None):
        raise Unsupported("a shelf tells nobody that something was put on it")
"""


def proof() -> str:
    (block,) = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return str(block)


def command() -> list[str]:
    (line,) = re.findall(r"^\$ python (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    return [sys.executable, *line.split()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shelf", "code", "counts"),
    [
        (SHELF, 0, r"\d{2,} passed, 0 failed, [1-9]\d* declared, 1 uncovered\n"),
        (SHELF.replace("        raise Unsupported", "        return lambda: None #"), 1, ""),
    ],
)
def test_the_proof_of_the_page_runs_with_the_command_of_the_page(
    tmp_path: Path, shelf: str, code: int, counts: str
) -> None:
    (tmp_path / "shelf.py").write_text(shelf)
    (tmp_path / "proof.py").write_text(proof())
    ran = subprocess.run(
        [*command(), "--quick"], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert re.match(counts, ran.stdout), ran.stdout
    assert ("did not raise Unsupported" in ran.stdout) == bool(code)


def test_the_page_tells_of_every_capability_and_of_nothing_else() -> None:
    text = PAGE.read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(Capabilities.__struct_fields__)
