"""One message that users meet: how it comes about, and what is really said.

Nothing here holds the text of a message: each case makes it anew, and the page of all of them is
compared with what was made.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure.graph import Graph, lint
from perdure.model.errors import PerdureError
from perdure.model.graph_rules import Finding

Say = Callable[[Path], str]


class Case(msgspec.Struct, frozen=True):
    """`key`: unique, `area.what`. `title`: what happened, in a line. `shown`: a minimal document
    or command, of the language `lang`. `say`: makes the message, in an empty folder. `do`: what
    to do, where the message cannot say it."""

    key: str
    title: str
    shown: str
    say: Say
    do: str = ""
    lang: str = "json"


class Section(msgspec.Struct, frozen=True):
    """Cases under one heading, with an introduction."""

    title: str
    intro: str
    cases: list[Case]


def compact(value: Any) -> str:
    """A value as a line of JSON, as people write it."""
    return json.dumps(value, ensure_ascii=False)


def one_finding(source: Any, severity: str, **options: Any) -> str:
    """The only finding of a document, which must be of that severity."""
    found = lint(source, **options)
    alike = [finding for finding in found if finding.severity == severity]
    assert len(alike) == 1, "\n".join(map(str, found))
    (finding,) = alike
    if severity == "error" and not {"steps", "definitions"} & options.keys():
        refused(source, finding, **options)
    return str(finding)


def refused(source: Any, finding: Finding, **options: Any) -> None:
    """An error of lint stops loading, with the same words."""
    with pytest.raises(PerdureError, match=re.escape(finding.message)):
        Graph.load(source, **options)


def whole(key: str, title: str, document: Any, severity: str = "error", do: str = "") -> Case:
    """A document that has one finding."""
    return Case(key, title, compact(document), lambda _: one_finding(document, severity), do)


def node(key: str, title: str, node: Any, severity: str = "error", **top: Any) -> Case:
    """A document of one node; the page shows the node, and what else the document says."""
    document = {"name": "order", "nodes": [node], **top}
    shown = compact(node) + "".join(f'\n"{name}": {compact(value)}' for name, value in top.items())
    return Case(key, title, shown, lambda _: one_finding(document, severity))


def text(key: str, title: str, source: str | bytes, format: str = "json", do: str = "") -> Case:
    """A text that is no document."""
    shown = source if isinstance(source, str) else repr(source)[2:-1]
    return Case(
        key, title, shown, lambda _: one_finding(source, "error", format=format), do, format
    )


def raised(key: str, title: str, shown: str, act: Callable[[Path], Any], do: str = "",
           lang: str = "python") -> Case:  # fmt: skip
    """What a call raises: the class of perdure's, and its words. `act` may be a coroutine."""

    def say(folder: Path) -> str:
        try:
            result = act(folder)
            if isinstance(result, Coroutine):
                result = asyncio.run(result)
        except Exception as error:
            return told(error)
        raise AssertionError(f"{key}: nothing was raised, but given: {result!r}")

    return Case(key, title, shown, say, do, lang)


def told(error: Exception) -> str:
    """An exception as a traceback ends: its class and its text."""
    return f"{type(error).__name__}: {error}"


def unique(sections: Iterable[Section]) -> list[Section]:
    """The sections; complains about a key that is there twice."""
    kept = list(sections)
    keys = [case.key for section in kept for case in section.cases]
    twice = {key for key in keys if keys.count(key) > 1}
    assert not twice, twice
    assert all(re.fullmatch(r"[a-z]+\.[a-z0-9-]+", key) for key in keys)
    return kept
