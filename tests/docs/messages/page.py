"""The page of all messages, put together from what was really said."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from tests.cli.commands import forgetting
from tests.docs.messages.case import Case, Section
from tests.tidy.tree import ROOT

PAGE = ROOT / "docs" / "reference" / "messages.md"

HEAD = """# Messages

Every message that a user of graphs can meet, how it comes about, and what to do. Each one here
was really made by the document or the command above it; `python -m tests.docs.messages` makes the
page anew.
"""
#: What differs from machine to machine, and what stands for it.
_STEADY = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:8080"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{22}\b"), "0198c5a2-…"),
)


def said(case: Case) -> str:
    """The message of a case, made in an empty folder of its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        os.chdir(folder)
        try:
            with forgetting(folder):
                message = case.say(folder)
        finally:
            os.chdir(before)
        for place in (f"{folder}/", str(folder), f"{name}/"):
            message = message.replace(place, "")
    for pattern, instead in _STEADY:
        message = pattern.sub(instead, message)
    return message.strip()


def page_of(sections: list[Section], messages: dict[str, str]) -> str:
    """The whole page."""
    parts = [HEAD]
    for section in sections:
        parts.append(f"## {section.title}\n")
        if section.intro:
            parts.append(f"{section.intro}\n")
        parts += [_entry(case, messages[case.key]) for case in section.cases]
    return "\n".join(parts)


def _entry(case: Case, message: str) -> str:
    title = case.title[0].upper() + case.title[1:]
    lines = [f"**{title}** (`{case.key}`)", ""]
    if case.shown:
        # No language is named: what is shown is mostly wrong, and no reader is to trip over it.
        lines += ["```text", case.shown, "```", ""]
    lines += ["```text", message, "```", ""]
    if case.do:
        lines += [case.do, ""]
    return "\n".join(lines)
