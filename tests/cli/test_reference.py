"""docs/reference/cli.md knows every command and every option, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from perdure.cli import exits
from perdure.cli.main import main
from tests.tidy.tree import ROOT

PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
HEADS = re.compile(r"(?ms)^###? `perdure ([a-z]+(?: [a-z]+)?)[^\n]*\n(.*?)(?=^###? |\Z)")
SECTIONS = dict(HEADS.findall(PAGE))


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by the words that call it."""
    for name, command in group.commands.items():
        yield before + name, command
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")


COMMANDS = dict(commands(main))


def options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from parameter.opts


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_a_section_that_names_its_options_and_no_others(name: str) -> None:
    written = set(re.findall(r"`(--?[a-z-]+)", SECTIONS[name]))
    assert written - {"-"} == set(options(COMMANDS[name]))


def test_every_section_is_about_a_command() -> None:
    assert sorted(SECTIONS) == sorted(COMMANDS)


def test_every_exit_code_is_explained() -> None:
    codes = {value for name, value in vars(exits).items() if name.isupper() and type(value) is int}
    table = PAGE.partition("**Exit codes**")[2].partition("An error is")[0]
    assert {int(code) for code in re.findall(r"\b\d+\b", table)} == codes
