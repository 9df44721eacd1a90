"""The tree of exceptions, grouped by who must act.

Declaration errors (DefinitionError) are for the programmer; request errors are for the caller,
with nothing changed; Failure and its kinds are outcomes, recorded; StoreError is transient and
never recorded as a run's failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from perdure.model.durations import Duration


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
    """There is no such run or definition. Out of a step it is a failure of this kind."""

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
    """

    kind: str = ""
    permanent: bool = False

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
    """A step failed for good: `kind` is the type name of what it raised."""

    step: str = ""
    attempt: int = 0


class RunFailed(Failure):
    """A run ended failed; `run` is its handle, `compensated` whether its undos all succeeded."""

    run: Any = None
    compensated: bool = False


class Permanent(Failure, permanent=True):
    """Stops retries for one raise; the original stays its cause and gives it kind and message."""

    def __init__(self, cause: BaseException | str, /) -> None:
        if isinstance(cause, BaseException):
            super().__init__(str(cause), kind=getattr(cause, "kind", "") or type(cause).__name__)
            self.__cause__ = cause
        else:
            super().__init__(cause, kind="Permanent")


class TimedOut(Failure, TimeoutError, kind="workflow.timeout"):
    """A wait, a step's attempt or a run took longer than it may."""


class Canceled(Failure, kind="workflow.canceled"):
    """The run was canceled."""


# ---------------------------------------------------------------------- trouble of the machinery


class StoreError(PerdureError):
    """The store failed; transient. The engine tries again with growing delays."""


class PayloadMissing(StoreError):
    """A value that a run has recorded is not in the store any more. Trying again would not bring
    it back: the run stalls, and says so."""


class NonDeterminism(PerdureError):
    """A workflow's code asked for something other than its journal holds."""
