"""Every command that a page shows is one that the command line takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import commands, sessions
from tests.tidy.tree import ROOT, files

PAGES = [
    path
    for path in files()
    if path.suffix == ".md" and not {"tests", "decisions"} & set(path.relative_to(ROOT).parts)
    # What it shows is there to be refused; tests/docs/messages types each of its commands.
    if path.name != "messages.md"
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_taken(page: Path) -> None:
    found = list(commands.commands(page.read_text(encoding="utf-8")))
    whole = [command for command in found if not commands.PLACE.search(command)]
    assert {command: why for command in whole if (why := commands.refused(command))} == {}


def test_commands_are_found_wherever_a_page_shows_them() -> None:
    text = """
Type `perdure list --json`, or:

    perdure show a/1 --history

```console
$ perdure start hello.yaml --id 1 \\
    --input '{"a": 1}' && perdure why hello/1 | head
a/1
$ perdure worker hello.yaml &
```
"""
    assert list(commands.commands(text)) == [
        "perdure start hello.yaml --id 1 --input '{\"a\": 1}'",
        "perdure why hello/1",
        "perdure worker hello.yaml",
        "perdure show a/1 --history",
        "perdure list --json",
    ]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("perdure shwo a/1", "there is no command shwo"),
        ("perdure show a/1 --histroy", "No such option"),
        ("perdure show", "Missing argument"),
        ("perdure db migrat", "there is no command migrat"),
        ("perdure list --limit many", "not a valid integer"),
    ],
)
def test_commands_that_are_not_taken_are_caught(command: str, why: str) -> None:
    assert why in commands.refused(command)


def test_a_page_is_read_as_files_commands_and_what_they_print() -> None:
    text = """
Write `steps.py`:

```python
x = 1
```

```python
no_file = True
```

```console
$ perdure worker steps.py &
$ perdure start hello \\
    --id 1
hello/1
...
```
"""
    assert sessions.steps(text) == [
        sessions.File("steps.py", "x = 1\n"),
        sessions.Command("perdure worker steps.py &", []),
        sessions.Command("perdure start hello --id 1", ["hello/1", "..."]),
    ]


def test_only_what_changes_may_differ() -> None:
    shown = ["12:00:01  greet  completed (attempt 1, 0.31 s)", "...", "version 2a0b1c9d8e7f"]
    same = ["09:59:59  greet  completed (attempt 1, 12 s)", "a", "b", "version 0123456789ab"]
    assert sessions.differs(shown, same) == ""
    assert sessions.differs([], same) == ""
    for other in (same[:3], [*same, "c"], [same[0].replace("1,", "2,"), *same[1:]], same[1:]):
        assert sessions.differs(shown, other) != ""
