"""Finds commands of perdure's in pages, and says whether the command line would take them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click

from perdure.cli.main import main

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^(?: {4}|\t)(?:\$ )?(perdure .*(?:\\\n.*)*)$", re.MULTILINE)
QUOTED = re.compile(r"`(perdure [^`\n]+)`")
SHELL = {"console", "sh", "bash", "text", ""}
#: Words that stand for something: the command is only named, not shown whole.
PLACE = re.compile(r"…|\b[A-Z]{2,}\b|\[|\||\.\.\.")


def commands(text: str) -> Iterator[str]:
    """Every command line of a page that begins with `perdure`, without what follows it in the
    same line (`&&`, `|`, `&`, a comment)."""
    for kind, content in FENCE.findall(text):
        if kind in SHELL:
            joined = re.sub(r"\\\n\s*", "", content)
            found = re.findall(r"^(?:\$ )?(perdure .*)$", joined, re.MULTILINE)
            yield from (part for line in found for part in parts(line))
    plain = FENCE.sub("", text)
    for line in INDENTED.findall(plain):
        yield from parts(line)
    for line in QUOTED.findall(plain):
        yield from (part for part in parts(line) if part.count(" ") > 1)  # else only its name


def parts(line: str) -> Iterator[str]:
    """The commands of perdure's in a shell line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set("&|;"):
            if words[:1] == ["perdure"]:
                yield shlex.join(words)
            words = []
        else:
            words.append(word)


def refused(command: str) -> str:
    """Why the command line would not take a command; "" if it would. Nothing is run."""
    words = shlex.split(command)[1:]
    found: click.Command = main
    context = click.Context(main, info_name="perdure")
    while isinstance(found, click.Group):
        if not words or words[0].startswith("-"):
            return ""
        name = words.pop(0)
        below = found.get_command(context, name)
        if below is None:
            return f"there is no command {name}"
        found = below
    try:
        found.make_context(found.name, words, parent=context)
    except click.exceptions.Exit:
        return ""
    except click.ClickException as error:
        return error.format_message()
    return ""
