"""How an operation ended, in few words: the only thing that metrics tell apart.

Closed sets on purpose. A failure's kind may be anything a user makes of it, an id as well, and its
text is a secret until proven otherwise: neither gets out.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping
from typing import Final

from perdure.model.errors import (
    AlreadyStarted,
    Canceled,
    DefinitionError,
    Failure,
    InvalidRequest,
    NotFound,
    RunActive,
    RunFinished,
    StoreError,
    TimedOut,
    Unsupported,
)
from perdure.model.failure import FailureRecord

#: It did what was asked. `exists`: of a start, the run is there already.
OK: Final = "ok"
EXISTS: Final = "exists"
ERROR: Final = "error"
#: Nobody waited for it any more; neither a success nor a failure.
CANCELED: Final = "canceled"
#: What is no error but ends the process went through it.
PANIC: Final = "panic"

#: What is none of the others, by the name that OpenTelemetry gives it.
OTHER: Final = "_OTHER"
_TIMEOUT: Final = "timeout"
_INVALID: Final = "invalid"
_CANCELED: Final = "canceled"
_FAILED: Final = "failed"

#: The first that fits; outcomes of runs and steps after their special kinds.
_ERRORS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (TimedOut, _TIMEOUT),
    (Canceled, _CANCELED),
    (Failure, _FAILED),
    (NotFound, "not_found"),
    (InvalidRequest, _INVALID),
    (DefinitionError, _INVALID),
    (RunFinished, "run_finished"),
    (RunActive, "run_active"),
    (Unsupported, "unsupported"),
    (StoreError, "store"),
)
_KINDS: Final[Mapping[str, str]] = {
    TimedOut.kind: _TIMEOUT,
    Canceled.kind: _CANCELED,
    "CancelledError": _CANCELED,
    "InvalidRequest": _INVALID,
    "PayloadTooLarge": _INVALID,
}


def of_call(error: BaseException | None) -> tuple[str, str]:
    """Outcome and type of error of a client's call; "" where there is no error."""
    if error is None:
        return OK, ""
    if isinstance(error, AlreadyStarted):
        return EXISTS, ""
    if isinstance(error, (CancelledError, GeneratorExit)):
        return CANCELED, ""
    if not isinstance(error, Exception):
        return PANIC, ""
    return ERROR, next((name for kind, name in _ERRORS if isinstance(error, kind)), OTHER)


def of_attempt(failure: FailureRecord | None) -> tuple[str, str]:
    """Outcome and type of error of a step's attempt, by what is recorded of it."""
    return (OK, "") if failure is None else (ERROR, _KINDS.get(failure.kind, _FAILED))


def of_run(status: str, kind: str) -> tuple[str, str]:
    """Outcome and type of error of a run that ended, by its status and its failure's kind."""
    if status == "completed":
        return OK, ""
    if status == "canceled":
        return CANCELED, ""
    return ERROR, _KINDS.get(kind, _FAILED)
