"""What a parser of YAML says, in words that tell a person what to do."""

from __future__ import annotations

import re
from typing import Any, Final

_QUOTED: Final = re.compile(r"""(?<![^\s\[{,:-])(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*')""")
_TEMPLATE: Final = re.compile(r"\{\{")
#: One that a value begins with; within a value it may well be plain text.
_VALUE: Final = re.compile(r"(?:^|[:,\[-])\s*\{\{")
#: Part of what the parser says, what is wrong, what to do.
_SAID: Final = (
    (
        "mapping values are not allowed",
        "a colon that cannot stand here",
        'text with a colon goes in "quotes"; is the line indented as those above it?',
    ),
    (
        "expected <block end>",
        "this does not fit the lines above it",
        'is it indented as they are? text with quotes in it goes in "quotes" as a whole',
    ),
    ("could not find expected ':'", "a key without its colon", 'write "key: value"'),
    (
        "expected ',' or",
        "a list or mapping in brackets does not go on like this",
        "is a comma or bracket missing before it?",
    ),
    ("expected the node content", "a value is missing, or a bracket is never closed", "write it"),
    ("found unexpected end of stream", "a quote is never closed", "close it"),
    ("found unexpected document", "a quote is never closed", "close it"),
    (
        "escape",
        "a backslash that escapes nothing",
        "write \\\\ for a backslash, or put the text in single quotes",
    ),
    ("incompatible YAML document", "a version of YAML that nobody knows", "take the line out"),
    ("undefined tag handle", "a tag", 'take it out; "quotes" make a value text'),
    ("found undefined alias", "an alias without its anchor", "write &name before it"),
    ("indentation", "an indentation that fits nothing above it", "use as many spaces as there"),
)


def stumble(text: str, error: Any) -> int:
    """The offset at which a YAMLError with marks says that the parser stopped; for a quote that
    is never closed, the one that it began with."""
    mark = error.problem_mark or error.context_mark
    if "found unexpected" in str(error.problem) and error.context_mark is not None:
        mark = error.context_mark
    return len(text) if mark is None else min(mark.index, len(text))


def unquoted(text: str, at: int) -> int | None:
    """The offset of a `{{` outside quotes in the line in which the parser stumbled, or in the
    one before; None when there is none up to there."""
    end = text.find("\n", at)
    start = text.rfind("\n", 0, at) + 1
    places = (
        (start, end if end >= 0 else len(text), _TEMPLATE),
        (*_line_before(text, start), _VALUE),
    )
    for begin, stop, pattern in places:
        line = _QUOTED.sub(lambda found: "x" * len(found[0]), text[begin:stop].partition(" #")[0])
        found = pattern.search(line)
        if found is not None:
            return begin + found.end() - 2
    return None


def _line_before(text: str, start: int) -> tuple[int, int]:
    if not start:
        return 0, 0
    return text.rfind("\n", 0, start - 1) + 1, start - 1


def words(text: str, at: int, error: Exception) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    problem = getattr(error, "problem", None)
    if not isinstance(problem, str):
        return "an escape that names no character", "\\\\U0010ffff is the last one"
    if text[at : at + 1] == "\t" or "\\t" in problem:
        return "a tab", "YAML is indented by spaces alone"
    if text[at : at + 1] in ("@", "`", "%") and "cannot start" in problem:
        return f"text cannot begin with {text[at]}", 'put it in "quotes"'
    said = f"{getattr(error, 'context', None) or ''} {problem}"
    for part, message, hint in _SAID:
        if part in said:
            return message, hint
    return problem.partition("\n")[0][:200], ""
