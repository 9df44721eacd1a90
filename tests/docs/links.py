"""Reads links and headings of Markdown files, leaving code blocks out."""

from __future__ import annotations

import re
from pathlib import Path

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)


def targets(text: str) -> list[str]:
    """Every link target outside code."""
    return LINK.findall(CODE.sub("``", FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """The anchors that headings get: lower case, signs dropped, spaces to hyphens."""
    plain = (re.sub(r"[`*]", "", title) for title in HEADING.findall(FENCE.sub("", text)))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain}


def broken(path: Path) -> list[str]:
    """Relative links of a file that lead nowhere."""
    problems = []
    for target in targets(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        file, _, anchor = target.partition("#")
        there = path.parent / file if file else path
        if not there.exists():
            problems.append(f"{path.name}: {target}: no such file")
        elif anchor and anchor not in anchors(there.read_text(encoding="utf-8")):
            problems.append(f"{path.name}: {target}: no such heading")
    return problems
