"""What a parser of YAML says, in words that tell a person what to do."""

from __future__ import annotations

import re
from typing import Final

_QUOTED: Final = re.compile(r"""(?<![^\s\[{,:-])(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*')""")
_TEMPLATE: Final = re.compile(r"\{\{")
#: One that a value begins with; within a value it may well be plain text.
_VALUE: Final = re.compile(r"(?:^|[:,\[-])\s*\{\{")
_SAID: Final = (
    ("mapping values are not allowed", "a second colon in one line", 'put the text in "quotes"'),
    (
        "expected <block end>",
        "this line does not fit those above it",
        'is it indented as they are, and text in "quotes" alone in its place?',
    ),
    ("could not find expected ':'", "a key without its colon", 'write "key: value"'),
    (
        "expected ',' or",
        "a list or mapping in brackets does not go on like this",
        "is a comma or bracket missing before it?",
    ),
    ("found unexpected end of stream", "a quote or bracket is never closed", "close it"),
    ("found undefined tag handle", "a tag that was not declared", "tags are not for documents"),
    ("while scanning a quoted", "quoted text is not closed, or has a wrong escape",
     "in double quotes a backslash is written \\\\"),
)  # fmt: skip


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
    if text[at : at + 1] == "\t" or "\\t" in str(getattr(error, "problem", "")):
        return "a tab", "YAML is indented by spaces alone"
    if text[at : at + 1] in ("@", "`", "%"):
        return f"text cannot begin with {text[at]}", 'put it in "quotes"'
    problem = str(getattr(error, "problem", None) or error)
    said = f"{getattr(error, 'context', None) or ''} {problem}"
    for part, message, hint in _SAID:
        if part in said:
            return message, hint
    return problem.partition("\n")[0][:200], ""
