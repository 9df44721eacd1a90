"""The tree of exceptions, grouped by who must act.

Declaration errors (DefinitionError) are for the programmer; request errors are for the caller,
with nothing changed; Failure and its kinds are outcomes, recorded; StoreError is transient and
never recorded as a run's failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Self, cast

if TYPE_CHECKING:
    from perdure.model.duration_forms import Duration


#: How kinds begin that only perdure gives.
RESERVED: Final = "workflow."


class PerdureError(Exception):
    """What every exception of perdure derives from."""


# ------------------------------------------------------------------ declaration: the programmer


class DefinitionError(PerdureError):
    """A definition is wrong; `problems` lists all that is wrong with it, not the first only."""

    def __init__(self, message: str, problems: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.problems: Sequence[Any] = tuple(problems) or (message,)


class InvalidName(DefinitionError):
    """A workflow, step or signal has a name outside the rules."""


class InvalidId(DefinitionError):
    """A run id is empty, too long or has control characters."""


class InvalidOptions(DefinitionError):
    """An option has a value outside its range."""


class DuplicateName(DefinitionError):
    """Two definitions or steps of one engine share a name."""


class MissingMaxDuration(DefinitionError):
    """A workflow does not say its max_duration."""


class GraphError(DefinitionError):
    """A graph document is wrong; every problem is listed with where it stands."""


# ------------------------------------------------------------- request: the caller, nothing done


class NotFound(PerdureError):
    """There is no such run, definition or resource. Out of a step it is a failure of this kind."""

    kind = "workflow.not_found"


class RunFinished(PerdureError):
    """The run has ended and cannot take this request."""


class RunActive(PerdureError):
    """The run still has active tasks; cancel it first."""


class AlreadyStarted(PerdureError):
    """A run of this definition and id exists; `run` is its handle. Out of a step it is a failure of
    this kind."""

    kind = "workflow.already_started"

    def __init__(self, message: str, run: Any = None) -> None:
        super().__init__(message)
        self.run: Any = run


class InvalidRequest(PerdureError):
    """The request does not apply to this run or definition."""


class PayloadTooLarge(InvalidRequest):
    """A value is over the limit of one payload."""


class NoCases(InvalidRequest):
    """A select without cases."""


class Unsupported(PerdureError):
    """This store or driver cannot do that; nothing was done. Out of a step it is a failure of this
    kind."""

    kind = "workflow.unsupported"


# ------------------------------------------------------------------------- outcomes, recorded


class Failure(PerdureError):
    """A failure that crosses processes as itself: subclass it with kind=, catch it by class.

    Only `kind`, `message`, `permanent` and `details` are recorded. `retry_after` sets the delay
    before the next attempt, within the limits of the retry policy. A class whose kind begins with
    "workflow." raises InvalidOptions: those are perdure's own.

    `compensated`, of what a run ended with: something was undone, and with it all that the run
    did, or may have done where nobody knows. False of all else.
    """

    kind: str = ""
    permanent: bool = False
    compensated: bool = False

    def __init_subclass__(cls, *, kind: str = "", permanent: bool | None = None) -> None:
        super().__init_subclass__()
        if kind.startswith(RESERVED) and cls.__module__ != __name__:
            raise InvalidOptions(
                f"kind {kind!r} of {cls.__qualname__}: kinds that begin with {RESERVED!r} are "
                "perdure's own, give it another"
            )
        if kind:
            cls.kind = kind
        if permanent is not None:
            cls.permanent = permanent

    def __init__(
        self,
        message: str = "",
        /,
        *,
        kind: str = "",
        details: object = None,
        retry_after: Duration | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.retry_after = retry_after
        if kind:
            self.kind = kind
        elif not self.kind:
            self.kind = type(self).__name__

    def __str__(self) -> str:
        return self.message or self.kind


class StepFailed(Failure):
    """A step failed for good: `kind` is the type name of what it raised. `workflow`, `step`: where;
    `attempt`: the last one, from 1. What ends a run of a graph or a saga has one as its cause."""

    workflow: str = ""
    step: str = ""
    attempt: int = 0


class RunFailed(Failure):
    """A run ended failed, and no class of yours has the recorded kind. `run` is its handle;
    `compensated`: see Failure."""

    run: Any = None


class Permanent(Failure, permanent=True):
    """Stops retries for one raise. The original stays its cause and gives it kind, message and
    fields; what is raised is a Permanent and of the original's class, whichever is caught."""

    def __new__(cls, cause: BaseException | str = "", /) -> Self:
        if cls is Permanent and isinstance(cause, Exception):
            with suppress(TypeError):  # a class that is not made like others: the marker alone
                kind: Any = type(cause)
                made = cast("type[Self]", _marked(kind))
                return super(Permanent, made).__new__(made, *cause.args)
        return super().__new__(cls)

    def __init__(self, cause: BaseException | str, /) -> None:
        # Not by the constructors of the original's class: they ask for what only that was given.
        self.message = str(cause)
        self.args = (self.message,)
        self.details = self.retry_after = None
        self.kind = "Permanent"
        if isinstance(cause, BaseException):
            self.kind = getattr(cause, "kind", "") or type(cause).__name__
            self.__cause__ = cause
            for name, value in getattr(cause, "__dict__", {}).items():
                if name not in ("kind", "message", "permanent"):
                    self.__dict__[name] = value


#: What means something else when it is raised out of a coroutine, and what holds others.
_UNMIXED: Final = (StopIteration, StopAsyncIteration, BaseExceptionGroup)
_FIELDS: Final = ("message", "details", "retry_after", "kind", "permanent")


@lru_cache(maxsize=256)
def _marked(kind: type[Exception]) -> type[Permanent]:
    """The class of what is permanent and of this class. Raises TypeError where there is none."""
    if issubclass(kind, Permanent):
        return kind
    members = [vars(base).get(name) for base in kind.__mro__ for name in _FIELDS]
    if issubclass(kind, _UNMIXED) or any(hasattr(type(member), "__set__") for member in members):
        return Permanent
    name = f"Permanent[{kind.__name__}]"
    return cast("type[Permanent]", type(name, (Permanent, kind), {"__module__": __name__}))


class TimedOut(Failure, TimeoutError, kind="workflow.timeout"):
    """A wait, a step's attempt or a run took longer than it may. A builtin TimeoutError, too."""


class Canceled(Failure, kind="workflow.canceled"):
    """The run was canceled."""


# ---------------------------------------------------------------------- trouble of the machinery


class StoreError(PerdureError):
    """The store failed: it is busy, full, damaged, or cannot be opened. What it was asked for may
    have been recorded or not. Never a run's failure: engines try again, with growing delays."""


class PayloadMissing(StoreError):
    """A value that a run has recorded is not in the store any more. Trying again would not bring
    it back: the run stalls, and says so, and no call raises it."""


class NonDeterminism(PerdureError):
    """A workflow's code asked for something other than its journal holds, when it was to be
    retried or played again."""
