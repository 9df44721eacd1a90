"""UNKNOWN: stands for a value that only a run can tell, where a call is judged before one."""

from __future__ import annotations

from typing import Any, Final


class Unknown:
    """The class of UNKNOWN and UNKNOWN_TEXT alone."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNKNOWN: Final[Any] = Unknown("UNKNOWN")
#: Some text; which one only a run can tell.
UNKNOWN_TEXT: Final[Any] = Unknown("UNKNOWN_TEXT")


def holds_unknown(value: Any) -> bool:
    """Whether some part of a JSON value is not known."""
    if isinstance(value, dict):
        return any(holds_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(holds_unknown(item) for item in value)
    return isinstance(value, Unknown)
