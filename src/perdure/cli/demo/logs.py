"""The logs of those whom the demo's steps ask: one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The JSON objects of a log, one a line; none where there is no log yet. A last line that is
    still being written is left out."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
