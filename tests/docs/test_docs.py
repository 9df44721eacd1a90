"""Documentation that breaks the build: links lead somewhere, and what exists is written about."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import perdure
from tests.docs import links
from tests.tidy.tree import ROOT, files

KINDS = {"feature", "change", "fix", "removal", "docs"}


def pages() -> list[Path]:
    """Pages for people: every Markdown file but the tests' own."""
    return [p for p in files() if p.suffix == ".md" and "tests" not in p.relative_to(ROOT).parts]


def prose() -> str:
    """All pages as one text, without the catalogue of rules, which explains nothing."""
    return "\n".join(p.read_text(encoding="utf-8") for p in pages() if p.name != "rules.md")


def commands(group: Any, path: str) -> list[str]:
    """Every visible command below a click group, as typed."""
    found = []
    for name, command in sorted(getattr(group, "commands", {}).items()):
        if not command.hidden:
            found += [f"{path} {name}", *commands(command, f"{path} {name}")]
    return found


def test_every_relative_link_leads_somewhere() -> None:
    assert [
        problem for path in files() if path.suffix == ".md" for problem in links.broken(path)
    ] == []


def test_every_command_is_written_about() -> None:
    if not (ROOT / "src" / "perdure" / "cli" / "main.py").exists():
        pytest.skip("there is no command line yet")
    found = commands(importlib.import_module("perdure.cli.main").main, "perdure")
    text = prose()
    assert found != []
    assert [c for c in found if not re.search(rf"{re.escape(c)}\b", text)] == []


def test_every_public_name_is_written_about() -> None:
    text = prose()
    assert [n for n in perdure.__all__ if not re.search(rf"\b{re.escape(n)}\b", text)] == []


def test_every_changelog_fragment_is_well_named() -> None:
    names = [p.name for p in (ROOT / "changes").glob("*") if p.name != "README.md"]
    pattern = re.compile(rf"\d{{4}}\.(?:{'|'.join(sorted(KINDS))})\.md")
    assert [name for name in names if not pattern.fullmatch(name)] == []


def test_decision_notes_are_numbered_without_gaps() -> None:
    names = sorted(p.name for p in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    numbers = [int(name.split("-")[0]) for name in names]
    assert numbers == list(range(1, len(names) + 1))


def test_every_decision_note_is_in_the_table_of_them() -> None:
    folder = ROOT / "docs" / "decisions"
    table = (folder / "README.md").read_text(encoding="utf-8")
    assert [p.name for p in folder.glob("[0-9]*.md") if f"]({p.name})" not in table] == []


def test_a_broken_link_and_a_missing_heading_are_caught(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        "# One `two`\n[a](#one-two) [b](b.md) [c](#three) `[d](d.md)` [e](https://x.y)\n",
        encoding="utf-8",
    )
    assert links.broken(page) == ["a.md: b.md: no such file", "a.md: #three: no such heading"]
