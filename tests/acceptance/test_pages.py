"""What the README and the tutorial tell a newcomer to type is what the example holds and does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

QUICKSTART = ROOT / "examples" / "quickstart"
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial" / "first-workflow.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.parametrize(("language", "file"), [("python", "steps.py"), ("json", "hello.json")])
def test_the_files_of_the_page_are_those_of_the_example(
    page: Path, language: str, file: str
) -> None:
    text = page.read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block == (QUICKSTART / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", [*PAGES, QUICKSTART / "README.md"], ids=lambda page: page.parent.name
)
def test_the_command_of_the_page_is_the_one_that_is_tested(page: Path) -> None:
    command = """perdure run hello.json --app steps.py --id ann --input '{"name": "Ann"}'"""
    assert command in page.read_text(encoding="utf-8")
