"""Type checkers, asked about whole programs: which lines of which file they find errors on.

mypy is one of the development tools, and so is a build of pyright that brings its own runtime;
where neither that nor pyright itself is installed, the tests say so.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from tests.tidy.tree import ROOT

Found: TypeAlias = dict[Path, set[int]]

#: What the design's programs are checked with: names that a program keeps for its reader.
SWITCHES = {
    "typeCheckingMode": "strict",
    "reportPrivateUsage": False,
    "reportUnusedVariable": False,
    "reportUnusedImport": False,
    "reportUnusedFunction": False,
}


def wanted(path: Path) -> set[int]:
    """The lines that are to be errors: those that end in `# E`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if re.search(r"# E(?:$|[ :])", line)}


def by_mypy(paths: Sequence[Path]) -> Found:
    """What `mypy --strict` finds; errors in other files fail. Told no more than `make check` tells
    it: a difference would make each of the two read the whole source again."""
    options = ["--strict", "--no-error-summary", "--no-pretty"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, paths)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    matches = (re.match(r"(.+?):(\d+): error: ", line) for line in done.stdout.splitlines())
    return _sorted((paths, [(ROOT / m[1], int(m[2]), m.string) for m in matches if m]))


def pyright() -> str | None:
    """The program to ask; None where there is none."""
    beside = Path(sys.executable).with_name("basedpyright")
    return shutil.which("pyright") or (str(beside) if beside.exists() else None)


def by_pyright(paths: Sequence[Path], folder: Path) -> Found:
    """What pyright finds in its strict mode, told so by a file in `folder`."""
    program = pyright()
    assert program is not None
    config = folder / "pyrightconfig.json"
    beside = sorted({str(path.parent) for path in paths})  # they may import one another
    include = {"include": [str(path) for path in paths], "extraPaths": [str(ROOT / "src"), *beside]}
    config.write_text(json.dumps(SWITCHES | include), encoding="utf-8")
    done = subprocess.run(
        [program, "--outputjson", "--project", str(config), "--pythonpath", sys.executable],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] >= len(paths), said["summary"]
    return _sorted(
        (
            paths,
            [
                (Path(item["file"]), item["range"]["start"]["line"] + 1, item["message"])
                for item in said["generalDiagnostics"]
                if item["severity"] == "error"
            ],
        )
    )


def _sorted(found: tuple[Sequence[Path], Iterable[tuple[Path, int, str]]]) -> Found:
    paths, errors = found
    by_path: Found = {path: set() for path in paths}
    same = {path.resolve(): path for path in paths}
    elsewhere = []
    for path, line, said in errors:
        known = same.get(path.resolve())
        if known is None:
            elsewhere.append(said)
        else:
            by_path[known].add(_decorated(known, line))
    assert elsewhere == []
    return by_path


def _decorated(path: Path, number: int) -> int:
    """An error of a decorator may be expected at what it decorates: checkers differ."""
    lines = path.read_text(encoding="utf-8").splitlines()
    marked = wanted(path)
    at = number
    while at < len(lines) and at not in marked and lines[at - 1].lstrip().startswith("@"):
        at += 1
    return at
