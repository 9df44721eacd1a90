"""What to do about a template that does not compile: mostly, another language was meant."""

from __future__ import annotations

import re
from typing import Final

from perdure.expr.errors import ExprError
from perdure.expr.functions import METHODS, PLAIN
from perdure.model.guesses import did_you_mean

#: Words of Python, of Jinja and of shells, as CEL says them.
_WORDS: Final = {
    "and": "write &&",
    "or": "write ||",
    "not": "write !",
    "is": "write ==",
    "if": "write condition ? then : otherwise",
    "else": "write condition ? then : otherwise",
    "|": "there are no filters: call a function, as in input.name.upperAscii()",
    "?": "for a value that may be missing write input.?x.orValue(…)",
    "None": "write null",
    "nil": "write null",
    "True": "write true",
    "False": "write false",
}
_FUNCTIONS: Final = {
    **dict.fromkeys(("len", "length", "count"), "size"),
    **dict.fromkeys(("str", "toString", "tostring", "format_string"), "string"),
    **dict.fromkeys(("float", "number", "toNumber"), "double"),
    **dict.fromkeys(("upper", "toUpperCase"), "upperAscii"),
    **dict.fromkeys(("lower", "toLowerCase"), "lowerAscii"),
    **dict.fromkeys(("includes", "has_key"), "contains"),
    **dict.fromkeys(("now", "today"), "system.now"),
}
#: For what is well written and may not be.
_MEANINGS: Final = {
    "reads secrets": "let a text of its own hold the secret alone",
    "condition may not read secrets": "let a step look at it, and ask for what it says",
    "does not fit 64 bits": "write it as text",
    "is not an escape": "for a backslash write two",
    "condition needs a template": "write {{ … }} around it",
}
_FOUND: Final = re.compile(r"found `(.+?)` where|`(.)` means nothing")
_FUNCTION: Final = re.compile(r"no such (?:function|method): (\w+)\(\)")
_CLOSING: Final = "close it"
_EXAMPLE: Final = "an expression is CEL, such as {{input.total > 100}}"


def hint_for(error: ExprError) -> str:
    """What is to be written instead, as far as it can be guessed."""
    message = error.message
    if "closing" in message:
        return _CLOSING
    function = _FUNCTION.search(message)
    if function is not None:
        return _function(function[1])
    found = _FOUND.search(message)
    if "equality is" in message:
        return "write =="
    word = (found[1] or found[2]) if found is not None else ""
    line = (error.source.splitlines() or [""])[error.line - 1 :][:1]
    before = re.search(r"(\w+)\s*$", "".join(line)[: error.column - 1])
    for one in (word, before[1] if before is not None else ""):
        if one in _WORDS:
            return _WORDS[one]
    for part, hint in _MEANINGS.items():
        if part in message:
            return hint
    return _EXAMPLE if found is not None or "found the end" in message else ""


def name_hint(name: str) -> str:
    """For a name that is nothing: the word of another language it may be."""
    return _WORDS.get(name, "")


def _function(name: str) -> str:
    if name in _FUNCTIONS:
        return f'did you mean "{_FUNCTIONS[name]}"?'
    near = did_you_mean(name, sorted({*PLAIN, *METHODS}))
    return near or "docs/reference/expressions.md lists the functions"
