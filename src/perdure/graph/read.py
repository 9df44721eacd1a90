"""From JSON text or a mapping to one plain JSON value, and back to its canonical bytes.

Refuses what JSON readers let pass and then treat differently from one another: a key written
twice, NaN and infinities, integers beyond 64 bits, broken Unicode. The value is a copy: nobody
can change a definition after it was checked.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from perdure.model.errors import GraphError
from perdure.model.graph_rules import Finding

#: Of the canonical text. A definition is stored with every version of it.
MAX_BYTES: Final = 4 * 1024 * 1024
MAX_DEPTH: Final = 64
MAX_VALUES: Final = 1_000_000
_MOST: Final = 2**63 - 1


class _Repeated(dict[str, Any]):
    """An object whose text gave some key more than once."""

    keys_twice: tuple[str, ...] = ()


class _TooLong(int):
    """Stands for an integer with more digits than are worth reading."""


def as_text(source: str | bytes) -> str:
    """The text of a document. Raises GraphError when it is too long or not UTF-8."""
    if len(source) > MAX_BYTES:
        raise refusal(f"the document has {len(source):,} characters, at most {MAX_BYTES:,} count")
    if isinstance(source, bytes):
        try:
            return source.decode("utf-8-sig").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            before = source[: error.start].decode("utf-8-sig", "replace")
            raise refusal(
                f"the document is not UTF-8: byte {error.start} (0x{source[error.start]:02x}) "
                "does not belong there",
                "save it as UTF-8",
                line_column(before, len(before)),
            ) from None
    return source.removeprefix("\ufeff")


def parse_json(source: str) -> Any:
    """The value of JSON text, repeated keys and other oddities still marked for `plain`."""
    try:
        return json.loads(source, object_pairs_hook=marked, parse_int=integer)
    except json.JSONDecodeError as error:
        said = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise refusal(
            f"the document is not JSON: {said}",
            _advice(source, error.msg),
            (error.lineno, error.colno),
        ) from None
    except RecursionError:
        raise refusal(f"the document is nested more than {MAX_DEPTH} levels deep") from None


def refusal(
    message: str, hint: str = "", at: tuple[int, int] = (0, 0), pointer: str = ""
) -> GraphError:
    """The error of a document that cannot be looked at any further; `at`: line and column."""
    finding = Finding(pointer, message, None, hint, line=at[0], column=at[1])
    return GraphError(str(finding), [finding])


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of an offset of the text."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, start) + 1, offset - start + 1


def _advice(source: str, said: str) -> str:
    text = source.strip()
    if not text:
        return "it is empty"
    if "',' delimiter" in said:
        return "is a comma missing before it, or a bracket open?"
    if "property name" in said:
        return "is there a comma too many before it, or a name without its quotes?"
    if "\n" not in text and text.lower().endswith((".json", ".yaml", ".yml")):
        return "is this the name of a file? Graph.read(path) reads files"
    if said == "Expecting value" and not text.startswith(("{", "[")):
        return 'if this is YAML: a file of it ends in .yaml, a text is loaded with format="yaml"'
    return ""


def marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members; keys given more than once are noted for `plain`."""
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    counts = Counter(key for key, _ in pairs)
    repeated = _Repeated(value)
    repeated.keys_twice = tuple(key for key, count in counts.items() if count > 1)
    return repeated


def integer(digits: str) -> int:
    """The number of decimal digits with or without a sign."""
    # Python refuses thousands of digits with an error of its own; 20 are too many already.
    return int(digits) if len(digits) <= 20 else _TooLong(2**63)


def pointer(parent: str, key: str | int) -> str:
    """The JSON pointer of a member of what `parent` points at."""
    return f"{parent}/{str(key).replace('~', '~0').replace('/', '~1')}"


class Copier:
    """Copies a value into plain dicts, lists and scalars, collecting what is not JSON."""

    def __init__(self, findings: list[Finding]) -> None:
        self._findings = findings
        self._count = 0

    def copy(self, value: Any, at: str = "", depth: int = 0) -> Any:
        """The plain copy; what cannot be copied becomes null, with a finding."""
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            # Raised, not collected: there may be no end to it (a value that holds itself).
            message = f"the document holds more than {MAX_VALUES:,} values"
            if depth > MAX_DEPTH:
                message = f"the document is nested more than {MAX_DEPTH} levels deep"
            raise refusal(message, pointer=_shown(at))
        if isinstance(value, str):
            return self._text(value, at)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            if -_MOST - 1 <= value <= _MOST:
                return int(value)
            return self._bad(at, "an integer beyond 64 bits", "write it as text")
        if isinstance(value, float):
            if math.isfinite(value):
                return float(value)
            return self._bad(at, f"{value} is not a number of JSON", "use null or text")
        if isinstance(value, Mapping):
            return self._mapping(value, at, depth)
        if isinstance(value, list | tuple):
            return [self.copy(v, pointer(at, i), depth + 1) for i, v in enumerate(value)]
        return self._bad(at, f"a {type(value).__name__} is not JSON", "use text, numbers, lists")

    def _mapping(self, value: Mapping[Any, Any], at: str, depth: int) -> dict[str, Any]:
        for key in getattr(value, "keys_twice", ()):
            message = "this key is written more than once"
            below = _shown(pointer(at, key))
            self._findings.append(Finding(below, message, None, "keep one", on_key=True))
        for key in value:
            if not isinstance(key, str):
                self._bad(at, f"the key {key!r} is not text", "JSON's keys are strings")
        result: dict[str, Any] = {}
        # Sorted, as in the canonical text: whoever loads the definition again from there must
        # build the same inputs, byte for byte.
        for key in sorted(k for k in value if isinstance(k, str)):
            below = pointer(at, key)
            result[self._text(key, below)] = self.copy(value[key], below, depth + 1)
        return result

    def _text(self, text: str, at: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            self._bad(at, "half a surrogate pair: this is not valid Unicode", "write the character")
            return ""
        return str(text)

    def _bad(self, at: str, message: str, hint: str) -> None:
        self._findings.append(Finding(_shown(at), message, None, hint))


def _shown(at: str) -> str:
    """A pointer as it is shown to people: what cannot be encoded is escaped."""
    return at.encode("utf-8", "backslashreplace").decode()


def plain(value: Any, findings: list[Finding]) -> dict[str, Any]:
    """The document as plain values; what is wrong with single values goes to `findings`.

    Raises GraphError when there is nothing to go on with.
    """
    if not isinstance(value, Mapping):
        raise refusal(
            f"the document is {_kind(value)}, not an object",
            'write {"name": …, "nodes": […], "edges": […]}',
        )
    copy: dict[str, Any] = Copier(findings).copy(value)
    return copy


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    number = "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
    return names.get(type(value), number)


def canonical(document: Any) -> bytes:
    """The one spelling of a document: keys sorted, nothing between, UTF-8. Its hash is the
    definition's identity (D-36). Raises GraphError when it is too large."""
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()
    if len(text) > MAX_BYTES:
        raise refusal(f"the document has {len(text):,} bytes, at most {MAX_BYTES:,} are kept")
    return text
