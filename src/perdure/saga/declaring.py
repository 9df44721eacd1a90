"""What a saga is refused for, option by option. How its steps stand to one another: checking.py.
All raise DefinitionError."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from perdure.flow import legible
from perdure.model.duration_forms import Duration
from perdure.model.durations import microseconds
from perdure.model.errors import DefinitionError, InvalidOptions
from perdure.saga.record import RETENTION

#: The ends of a run after which what it did may be undone.
ENDS: Final = ("cancel", "failure", "timeout")
_ON_FAILURE: Final = ("drain", "continue", "cancel")


def checked_payload(payload: Any) -> None:
    """The type of what runs are started with."""
    try:
        why = legible.fault(payload)
    except NameError:
        return
    if why:
        raise DefinitionError(f"its payload can never be read back from what is recorded: {why}")


def checked_retention(value: Duration | None) -> int:
    """How long a finished run is kept, in µs."""
    return RETENTION if value is None else microseconds(value, "retention")


def checked_on_failure(value: object) -> Literal["drain", "continue", "cancel"]:
    """What a step that failed for good means for the others."""
    for known in _ON_FAILURE:
        if value == known:
            return known
    raise InvalidOptions(f"on_failure {value!r}: use one of {', '.join(_ON_FAILURE)}")


def checked_undo_on(ends: Any) -> tuple[str, ...]:
    """The ends after which what was done is undone, each once, sorted."""
    if isinstance(ends, str) or not isinstance(ends, Iterable):
        raise InvalidOptions(f"undo_on {ends!r}: give a list of {', '.join(ENDS)}")
    given = list(ends)
    unknown = [end for end in given if end not in ENDS]
    if unknown:
        raise InvalidOptions(f"undo_on {unknown[0]!r}: use some of {', '.join(ENDS)}")
    return tuple(sorted(set(given)))
