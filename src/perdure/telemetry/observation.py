"""Observations: one span, one count and one duration for each operation that really happens.

A client's call is observed where it is made; an attempt from the moment its handler is called, in
the context that is the step's own and is thrown away with it. Nothing is ever left again by going
back: a context that is torn down elsewhere than where it was entered cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from perdure.model.carrier import checked_carrier
from perdure.model.errors import InvalidRequest
from perdure.model.names import is_name
from perdure.telemetry.outcomes import CANCELED, ERROR, EXISTS, PANIC, of_attempt, of_call

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from perdure.model.failure import FailureRecord
    from perdure.telemetry.service import Telemetry

T = TypeVar("T")

STEP_ATTEMPT: Final = "step_attempt"

Carrier = Mapping[str, str] | None


class _Observation:
    """What calls and attempts have in common."""

    __slots__ = ("_began", "_operation", "_span", "_telemetry", "_within")

    def __init__(self, telemetry: Telemetry, operation: str) -> None:
        self._telemetry = telemetry
        self._operation = operation
        self._span: Span | None = None
        self._within: Context | None = None
        self._began = 0.0

    def _begin(self, subject: str, within: Context, attributes: dict[str, str | int]) -> Span:
        operation = self._operation
        attributes["perdure.operation"] = operation
        name = f"{operation} {subject}" if subject else operation
        self._within = within
        self._span = self._telemetry.instruments.begin(operation, name, within, attributes)
        self._began = perf_counter()
        return self._span

    def _end(self, outcome: str, error: str) -> None:
        span, self._span = self._span, None
        if span is None:
            return
        seconds = perf_counter() - self._began
        labels = {"perdure.operation": self._operation, "perdure.outcome": outcome}
        if error:
            labels["error.type"] = error
        failed = outcome in (ERROR, PANIC)
        try:
            self._telemetry.instruments.end(span, seconds, labels, failed=failed)
        except Exception:
            self._telemetry.failed()


class Call(_Observation):
    """A call of a client's, as a context manager around all of it; its errors go on unchanged."""

    __slots__ = ("_exists",)

    def __init__(
        self, telemetry: Telemetry, operation: str, workflow: object, trace: Carrier
    ) -> None:
        super().__init__(telemetry, operation)
        self._exists = False
        # A name that could be none may be anything, and is not told.
        name = workflow if isinstance(workflow, str) and is_name(workflow) else ""
        attributes: dict[str, str | int] = {"perdure.workflow": name} if name else {}
        try:
            within = telemetry.instruments.of_current(_valid(trace))
            self._begin(name, within, attributes)
        except Exception:
            telemetry.failed()

    def exists(self) -> None:
        """What was to be made is there already."""
        self._exists = True

    def carrier(self, given: Carrier) -> Carrier:
        """The carrier for what this call starts: its own, over what was given."""
        span, within = self._span, self._within
        if span is None or within is None:
            return given
        try:
            return self._telemetry.instruments.carrier(span, given, within)
        except Exception:
            self._telemetry.failed()
            return given

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        outcome, error_type = of_call(error)
        self._end(EXISTS if self._exists and error is None else outcome, error_type)


def _valid(trace: Carrier) -> Carrier:
    """The carrier; none in the place of one with which the call will be refused."""
    try:
        return checked_carrier(trace)
    except InvalidRequest:
        return None


class Unobserved:
    """In the place of a call that nobody observes."""

    __slots__ = ()

    def exists(self) -> None:
        """See Call.exists."""

    def carrier(self, given: Carrier) -> Carrier:
        """See Call.carrier."""
        return given

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


UNOBSERVED: Final = Unobserved()


class Attempt(_Observation):
    """One execution of a step's handler. `number` counts from 1; `trace`: the run's carrier."""

    __slots__ = ("_number", "_step", "_trace", "_workflow")

    def __init__(
        self, telemetry: Telemetry, workflow: str, step: str, number: int, trace: Carrier
    ) -> None:
        super().__init__(telemetry, STEP_ATTEMPT)
        self._workflow = workflow
        self._step = step
        self._number = number
        self._trace = trace

    def around(self, call: Callable[..., T], *args: Any) -> T:
        """Begin, and call within the span: in a context that is the attempt's alone."""
        instruments = self._telemetry.instruments
        try:
            within = instruments.of_carrier(self._trace)
            attributes: dict[str, str | int] = {
                "perdure.workflow": self._workflow,
                "perdure.step": self._step,
                "perdure.attempt": self._number,
            }
            instruments.enter(self._begin(self._step, within, attributes), within)
        except Exception:
            self._telemetry.failed()
        return call(*args)

    def ended(self, failure: FailureRecord | None) -> None:
        """Its outcome is known."""
        self._end(*of_attempt(failure))

    def given_up(self) -> None:
        """It was told to stop, and how it ended counts for nothing."""
        self._end(CANCELED, "")

    def escaped(self) -> None:
        """Something went through it that is no error of the step's."""
        self._end(PANIC, "")

    def never(self) -> None:
        """Nothing was executed after all."""
        self._span = None
