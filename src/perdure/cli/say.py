"""Saying: the one way by which commands print text.

Much of what is printed others wrote: what a service answered, ids, metadata, names of files. A
terminal would obey some of it (move, colour, retitle, reverse), so that stands there as Python
writes it. Colours and pictures of our own are rich's, which is given such text only.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import IO, Any, Final

import click

from perdure.cli.streams import shows_everything

#: What terminals act upon instead of showing it: control characters, also those of one byte above
#: ASCII; what turns the direction of writing; other line ends; halves of characters. Line breaks
#: and tabs are harmless.
_COMMANDS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def say(text: str = "", *, err: bool = False, nl: bool = True, file: IO[Any] | None = None) -> None:
    """Print text on stdout, on stderr (`err`), or into `file`."""
    click.echo(visible(text), file=file, err=err, nl=nl)


def say_coloured(colour: str, lead: str, text: str) -> None:
    """Print text on stdout, led by a word that has a colour at a terminal."""
    click.echo(click.style(visible(lead), fg=colour) + visible(text))


def visible(text: str) -> str:
    """Text of others without what a terminal would obey."""
    return _COMMANDS.sub(_python, text)


def on_one_line(text: str) -> str:
    """The same, and it cannot look like several lines of ours."""
    return visible(text).replace("\n", "\\n")


def json_text(
    value: Any, indent: int | None = None, default: Callable[[Any], Any] | None = None
) -> str:
    """A value as JSON that is legible, where stdout can show it, and that a terminal only shows."""
    plain = not shows_everything(sys.stdout)
    text = json.dumps(value, ensure_ascii=plain, indent=indent, default=default)
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _python(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
