"""Reads the members of one object of a document, collecting every problem on the way.

A wrong member becomes a finding and its default, so that one mistake hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from perdure.graph.foreign_keys import meant
from perdure.graph.read import pointer
from perdure.model.durations import microseconds
from perdure.model.errors import InvalidOptions
from perdure.model.graph_rules import Finding
from perdure.model.guesses import did_you_mean

_NAMES: Final = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "null",
}
_WRITE: Final[dict[type, str]] = {
    list: "write [ … ]",
    dict: 'write {"key": value}',
    str: "write it in quotes",
}
#: Text that some readers of YAML take for a truth value, and YAML 1.2 does not.
_SWITCHES: Final = ("yes", "no", "on", "off", "y", "n", "true", "false")


def named(value: object) -> str:
    """What a value is, in words: "a list", and scalars as they are written."""
    if isinstance(value, dict | list) or value is None:
        return _NAMES[type(value)]
    shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def templated(value: object) -> bool:
    """Whether a value is text with a template in it, known only when a run reaches the node."""
    return isinstance(value, str) and "{{" in value


class Form:
    """One object (`value`) at `at`, belonging to `node` if to any."""

    __slots__ = ("at", "findings", "node", "value")

    def __init__(
        self,
        value: object,
        at: str,
        findings: list[Finding],
        node: str | None = None,
        example: str = "",
    ) -> None:
        self.at = at
        self.node = node
        self.findings = findings
        if not isinstance(value, dict):
            hint = example or 'write {"key": value}'
            self.problem(None, f"this is {named(value)}, not an object", hint)
            value = {}
        self.value: dict[str, Any] = value

    def problem(self, key: str | None, message: str, hint: str = "", *below: str | int) -> None:
        """Something is wrong with a member (or with what lies `below` it); None = with the
        object itself."""
        self.findings.append(Finding(self._at(key, below), message, self.node, hint))

    def misplaced(self, key: str, message: str, hint: str = "", *below: str | int) -> None:
        """A key should not be there, whatever it holds: the finding points at the key."""
        at = self._at(key, below)
        self.findings.append(Finding(at, message, self.node, hint, on_key=True))

    def _at(self, key: str | None, below: Sequence[str | int]) -> str:
        at = self.at if key is None else pointer(self.at, key)
        for step in below:
            at = pointer(at, step)
        return at

    def only(self, known: Sequence[str]) -> None:
        """Refuses every other key, suggesting the one that was meant."""
        for key in self.value:
            if key not in known:
                self.misplaced(key, f'there is no key "{key}" here', meant(key, known))

    def required(self, key: str, example: str) -> bool:
        """Whether the key is there; a finding if not."""
        if self.value.get(key) is not None:
            return True
        self.problem(None, f'"{key}" is missing', f"write {example}")
        return False

    def typed(self, key: str, kind: type, hint: str = "") -> Any:
        """The member if it is of that type, else None (with a finding unless it is absent)."""
        value = self.value.get(key)
        if value is None or type(value) is kind:
            return value
        if kind is bool and isinstance(value, str) and value.lower() in _SWITCHES:
            hint = "write true or false, without quotes"
        hint = hint or _WRITE.get(kind, "")
        self.problem(key, f"this is {named(value)}, not {_NAMES[kind]}", hint)
        return None

    def text(self, key: str, limit: int = 256, hint: str = "") -> str | None:
        """A text of 1 to `limit` characters, none of them a control character."""
        value: str | None = self.typed(key, str, hint)
        if value is None:
            return None
        if not value or len(value) > limit or not value.isprintable():
            wrong = "empty" if not value else "too long" if len(value) > limit else "not printable"
            self.problem(key, f"this text is {wrong}", hint or f"use 1-{limit} characters")
            return None
        return value

    def choice(self, key: str, known: Sequence[str]) -> str | None:
        """One of the known words."""
        value = self.value.get(key)
        if value is None or value in known:
            return value
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        hint = hint if hint.startswith("did") else "write one of these"
        self.problem(key, f"{named(value)} is none of {', '.join(known)}", hint)
        return None

    def duration(self, key: str) -> int | None:
        """Seconds or text like "30s", in µs; None when absent."""
        value = self.value.get(key)
        if value is None:
            return None
        duration: int | None = self.checked(key, lambda: microseconds(value, "the value"))
        return duration

    def checked(self, key: str | None, make: Callable[[], Any]) -> Any:
        """What `make` returns; its InvalidOptions as a finding, and None."""
        try:
            return make()
        except InvalidOptions as error:
            self.problem(key, str(error))
            return None

    def items(self, key: str) -> list[Any]:
        """A list's items; [] when absent."""
        return self.typed(key, list) or []
