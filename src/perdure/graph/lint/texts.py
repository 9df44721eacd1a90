"""Doubts about plain texts: what was meant as a template and is none, or not wholly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from perdure.graph.check import Checked
from perdure.graph.form import templated
from perdure.graph.lint.doubt import warning
from perdure.graph.read import pointer
from perdure.model.graph_rules import Finding

_PATH: Final = re.compile(
    r"\s*\$?\{?\s*((input|config|tasks|system|secrets)(\.\w+|\[\"[^\"]+\"\])+)\s*\}?\s*"
)


def doubtful_texts(checked: Checked) -> Iterator[Finding]:
    """All doubts about the texts of specs and of the output."""
    for node in checked.document.nodes:
        yield from _below(node.spec, f"{node.at}/spec", node.id)
    yield from _below(checked.document.output, "/output", None)


def _below(value: Any, at: str, node: str | None) -> Iterator[Finding]:
    if isinstance(value, str):
        yield from _text(value, at, node)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _below(item, pointer(at, index), node)
    elif isinstance(value, dict):
        for key, item in value.items():
            below = pointer(at, key)
            if templated(key):
                message = "the name of a field is never a template: it stays as it is written"
                yield warning(below, node, message, "put templates into values")
            yield from _below(item, below, node)


def _text(text: str, at: str, node: str | None) -> Iterator[Finding]:
    if "${{" in text.replace("${{{{", ""):
        message = 'the "$" before {{ is no part of a template: it stays in front of the value'
        yield warning(at, node, message, "write {{ … }}")
    elif not templated(text) and (match := _PATH.fullmatch(text)):
        hint = f"to read it write {{{{{match[1]}}}}}"
        yield warning(at, node, "this is a plain text and no template: it is passed as it is", hint)
