"""The program of the page on tracing prints the one trace that the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

PAGE = ROOT / "docs" / "howto" / "tracing.md"
REFERENCE = ROOT / "docs" / "reference" / "telemetry.md"


@pytest.mark.rule("W-58", "W-59", "W-61")
def test_the_program_of_the_page_prints_the_trace_of_the_page(tmp_path: Path) -> None:
    program = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )[0]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stderr == ""
    receipt = "receipt for 4200\n"
    assert receipt in done.stdout
    parts = done.stdout.replace(receipt, "").split("\n}\n")
    spans = {
        span["name"]: span for part in parts if part.strip() for span in [json.loads(part + "}")]
    }
    names = {span["context"]["span_id"].removeprefix("0x"): name for name, span in spans.items()}
    above = {
        name: names[(span["parent_id"] or "").removeprefix("0x")] if span["parent_id"] else None
        for name, span in spans.items()
    }
    assert above == {
        "request": None,
        "start pay": "request",
        "step_attempt charge": "start pay",
        "ask the bank": "step_attempt charge",
        "run pay": "start pay",
        "result pay": None,
    }
    told = REFERENCE.read_text(encoding="utf-8")
    attributes = {name for span in spans.values() for name in span["attributes"]}
    assert attributes == set(
        re.findall(r"^\| `(perdure\.\w+)` \| (?:all|attempts)", told, re.MULTILINE)
    )
