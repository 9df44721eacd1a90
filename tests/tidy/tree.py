"""The project's files as the tidy tests see them: found by walking, read and parsed once.

Walking and not asking git, so that the checks also hold in a tree unpacked from an archive.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "bench", "examples", "docs", "changes", ".ci")
BUILT = {"__pycache__", "assets", "node_modules"}
TEXT = {"", ".py", ".pyi", ".md", ".toml", ".txt", ".sql", ".cfg", ".ini", ".json", ".yaml", ".yml"}


class Source(NamedTuple):
    """One Python file: its path from the root with forward slashes, its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def module(self) -> str:
        """Dotted name of a file under src; a package's file has the package's name."""
        parts = list(Path(self.path).with_suffix("").parts)
        parts = parts[1:] if parts[0] == "src" else parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def floor(self) -> str:
        """The folder right under perdure, or '' for files beside it."""
        parts = self.module.split(".")
        return parts[1] if len(parts) > 1 else ""


def planted(text: str, path: str = "src/perdure/kernel/planted.py") -> Source:
    """A source that is not in the tree, to see a check bite."""
    return Source(path, text, ast.parse(text))


@cache
def files() -> tuple[Path, ...]:
    """Every text file of the project that people write."""
    found = [p for p in ROOT.iterdir() if p.is_file() and p.suffix in TEXT]
    for folder in FOLDERS:
        found += [
            p
            for p in (ROOT / folder).rglob("*")
            if p.is_file() and p.suffix in TEXT and not BUILT & set(p.relative_to(ROOT).parts)
        ]
    return tuple(sorted(found))


@cache
def sources(folder: str) -> tuple[Source, ...]:
    """Parsed Python files under a top folder."""
    return tuple(
        planted(p.read_text(encoding="utf-8"), p.relative_to(ROOT).as_posix())
        for p in files()
        if p.suffix == ".py" and p.relative_to(ROOT).parts[0] == folder
    )


@cache
def all_sources() -> tuple[Source, ...]:
    """Parsed Python files of every folder."""
    return tuple(s for folder in FOLDERS for s in sources(folder))
