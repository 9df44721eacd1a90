"""Strings: searching, cutting, joining, changing case, quoting.

Positions count characters (code points), as CEL has it, and one outside the string is an error.
"""

from __future__ import annotations

from typing import Any

from perdure.expr.budget import Env, take_length, take_size
from perdure.expr.errors import Fault
from perdure.expr.functions.function import of

_SPACES = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_QUOTED = str.maketrans(
    {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
     "\\": "\\\\", '"': '\\"'}
)  # fmt: skip


def _strings(*values: Any) -> bool:
    return all(type(value) is str for value in values)


def contains(env: Env, text: Any, part: Any) -> Any:
    """Whether `part` stands anywhere in the text."""
    if not _strings(text, part):
        return NotImplemented
    take_length(env, len(text))
    return part in text


def starts_with(text: Any, part: Any) -> Any:
    """Whether the text starts with `part`."""
    return text.startswith(part) if _strings(text, part) else NotImplemented


def ends_with(text: Any, part: Any) -> Any:
    """Whether the text ends with `part`."""
    return text.endswith(part) if _strings(text, part) else NotImplemented


def char_at(text: Any, at: Any) -> Any:
    """The character at a position; empty just behind the last one."""
    if not _strings(text) or type(at) is not int:
        return NotImplemented
    if not 0 <= at <= len(text):
        raise Fault(f"charAt(): position {at} is outside the string")
    return text[at : at + 1]


def index_of(env: Env, text: Any, part: Any, start: Any = 0) -> Any:
    """Where `part` first stands at or after `start`; -1 if nowhere."""
    if not _strings(text, part) or type(start) is not int:
        return NotImplemented
    take_length(env, len(text))
    if not 0 <= start <= len(text):
        raise Fault(f"indexOf(): position {start} is outside the string")
    return text.find(part, start)


def last_index_of(env: Env, text: Any, part: Any, last: Any = None) -> Any:
    """Where `part` last stands, not beginning after `last`; -1 if nowhere."""
    if not _strings(text, part) or not (last is None or type(last) is int):
        return NotImplemented
    take_length(env, len(text))
    if last is None:
        return text.rfind(part)
    if not 0 <= last <= len(text):
        raise Fault(f"lastIndexOf(): position {last} is outside the string")
    return text.rfind(part, 0, last + len(part))


def substring(env: Env, text: Any, start: Any, end: Any = None) -> Any:
    """The characters from `start` up to `end`."""
    if not _strings(text) or type(start) is not int or not (end is None or type(end) is int):
        return NotImplemented
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= stop <= len(text):
        raise Fault("substring(): a position is outside the string")
    if stop < start:
        raise Fault("substring(): the end is before the start")
    take_size(env, stop - start)
    return text[start:stop]


def replace(env: Env, text: Any, old: Any, new: Any, limit: Any = -1) -> Any:
    """All, or the first `limit`, occurrences of `old` replaced."""
    if not _strings(text, old, new) or type(limit) is not int:
        return NotImplemented
    count = text.count(old)
    count = count if limit < 0 else min(limit, count)
    take_size(env, len(text) + max(0, count * (len(new) - len(old))))
    return text.replace(old, new, count)


def split(env: Env, text: Any, separator: Any, limit: Any = -1) -> Any:
    """The parts between separators, at most `limit` of them."""
    if not _strings(text, separator) or type(limit) is not int:
        return NotImplemented
    take_size(env, len(text))
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text) or [""]
    return [*text[: limit - 1], text[limit - 1 :]]


def join(env: Env, items: Any, separator: Any = "") -> Any:
    """The strings of a list in one."""
    if type(items) is not list or not _strings(separator, *items):
        return NotImplemented
    take_size(env, sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def trim(env: Env, text: Any) -> Any:
    """The text without white space at its ends."""
    if not _strings(text):
        return NotImplemented
    take_size(env, len(text))
    return text.strip(_SPACES)


def lower(env: Env, text: Any) -> Any:
    """A to Z in lower case; nothing else changes."""
    if not _strings(text):
        return NotImplemented
    take_size(env, len(text))
    return text.translate(_LOWER)


def upper(env: Env, text: Any) -> Any:
    """a to z in upper case; nothing else changes."""
    if not _strings(text):
        return NotImplemented
    take_size(env, len(text))
    return text.translate(_UPPER)


def quote(env: Env, text: Any) -> Any:
    """The text in double quotes with its special characters escaped."""
    if not _strings(text):
        return NotImplemented
    take_size(env, len(text) * 2)
    return f'"{text.translate(_QUOTED)}"'


PLAIN = {"strings.quote": of(quote, 1, metered=True)}
METHODS = {
    "contains": of(contains, 2, metered=True),
    "startsWith": of(starts_with, 2),
    "endsWith": of(ends_with, 2),
    "charAt": of(char_at, 2),
    "indexOf": of(index_of, 2, 3, metered=True),
    "lastIndexOf": of(last_index_of, 2, 3, metered=True),
    "substring": of(substring, 2, 3, metered=True),
    "replace": of(replace, 3, 4, metered=True),
    "split": of(split, 2, 3, metered=True),
    "join": of(join, 1, 2, metered=True),
    "trim": of(trim, 1, metered=True),
    "lowerAscii": of(lower, 1, metered=True),
    "upperAscii": of(upper, 1, metered=True),
}
