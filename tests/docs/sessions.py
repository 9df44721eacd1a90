"""Reads pages as somebody who types what they say: their files are written, their commands run,
and what those print is compared with what the page shows.

- A fenced block below a line that ends in "`name.ext`:" is a file.
- A ```console block holds commands after `$ ` and what they print. ` &` at the end leaves a
  command running, `kill -9 %1` kills the first that was. `echo $?` tells the exit code of the
  command before it.
- Output is compared line by line, with times, lengths of time, hashes, ports and process
  numbers taken for equal; `...` stands for any words in a line, or for any lines. A command that
  shows no output may print what it likes, and one that only looks is tried again until it shows
  what it should.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./-]+\.\w+)`[^`\n]*:\s*\Z")
#: What differs from one time to the next, and what it is taken for.
CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d"), "DATE"),
    (re.compile(r"\d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? (s|m \d\d s|h \d\d m|d \d\d h)\b"), "LENGTH"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b"), "HASH"),
    (re.compile(r"process \d+ on [\w.-]+"), "PROCESS"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r" {2,}"), "  "),
)


#: Commands that look at something that may not have come yet.
LOOKS = ("perdure why ", "perdure show ", "perdure list", "cat ")


class File(NamedTuple):
    """A file of the page."""

    name: str
    text: str


class Command(NamedTuple):
    """A command of the page, and the lines it shows."""

    line: str
    shown: list[str]

    @property
    def stays(self) -> bool:
        """Whether it is left running."""
        return self.line.endswith(" &")

    @property
    def looks(self) -> bool:
        """Whether it only looks, and may be tried again."""
        return self.line.startswith(LOOKS) and bool(self.shown)

    @property
    def kills(self) -> int | None:
        """Which of those left running it kills, from 1."""
        found = re.fullmatch(r"kill -9 %(\d)", self.line)
        return None if found is None else int(found[1])


def steps(text: str) -> list[File | Command]:
    """What somebody does who follows the page, in order."""
    found: list[File | Command] = []
    for block in BLOCK.finditer(text):
        kind, content = block.groups()
        name = FILE.search(text[: block.start()].rstrip() + "\n")
        if kind == "console":
            found += _commands(content)
        elif name is not None and kind in ("python", "yaml", "json", "toml"):
            found.append(File(name[1], content))
    return found


def _commands(content: str) -> list[Command]:
    found: list[Command] = []
    for line in content.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:].strip(), []))
        elif found and found[-1].line.endswith("\\"):
            found[-1] = Command(f"{found[-1].line[:-1].rstrip()} {line.strip()}", [])
        elif found:
            found[-1].shown.append(line)
        else:
            raise AssertionError(f"output before any command: {line!r}")
    return found


def settled(line: str) -> str:
    """A line with what changes taken out."""
    for pattern, word in CHANGING:
        line = pattern.sub(word, line)
    return line.rstrip()


def differs(shown: list[str], printed: list[str]) -> str:
    """How what was printed differs from what is shown; "" if it does not."""
    wanted = [settled(line) for line in shown if line.strip()]
    came = [settled(line) for line in printed if line.strip()]
    if not wanted or _matches(wanted, came):
        return ""
    return "shown:\n  " + "\n  ".join(wanted) + "\nprinted:\n  " + "\n  ".join(came)


def _matches(wanted: list[str], came: list[str]) -> bool:
    if not wanted:
        return not came
    if wanted[0] == "...":
        return any(_matches(wanted[1:], came[n:]) for n in range(len(came) + 1))
    if not came or not _same(wanted[0], came[0]):
        return False
    return _matches(wanted[1:], came[1:])


def _same(wanted: str, came: str) -> bool:
    parts = map(re.escape, wanted.split("..."))
    return wanted == came or re.fullmatch(".*".join(parts), came) is not None


def of(page: Path) -> list[File | Command]:
    """The steps of a page in a file."""
    return steps(page.read_text(encoding="utf-8"))
