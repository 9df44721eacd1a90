"""Played: how a workflow went in a test: its outcome, the calls of its steps, its history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec

from perdure.codec.failures import failure_from
from perdure.flow.step import Step
from perdure.model.errors import Canceled, Failure, RunFailed
from perdure.model.failure import FailureRecord

O = TypeVar("O")  # noqa: E741

Status = Literal["completed", "failed", "canceled", "waiting", "stalled"]


class PlayedCall(msgspec.Struct, frozen=True):
    """One attempt of a step. `node`: which call it was, such as `charge#2`; `attempt` from 1; `at`:
    seconds of virtual time since the start; `arguments` by parameter."""

    step: str
    node: str
    attempt: int
    at: float
    arguments: Mapping[str, Any]


class Played(msgspec.Struct, Generic[O], frozen=True):
    """How a workflow went in virtual time.

    status: completed, failed or canceled; "waiting" when nothing would ever end it, "stalled" when
    its code could not go on (`reason` says why). output: as the function's return type. failure:
    of the run, {kind, message, …}, or None. seconds: from the start to the last thing that
    happened. calls: every attempt of a step, in the order in which they began. notes: what was odd
    without being wrong, such as a signal that nobody took. history: the run's records, as
    `Run.history()` gives them.
    """

    name: str
    status: Status
    output: O | None
    failure: Mapping[str, Any] | None
    reason: str
    seconds: float
    calls: tuple[PlayedCall, ...]
    notes: tuple[str, ...]
    history: tuple[Mapping[str, Any], ...]

    def result(self) -> O:
        """The output, or raises what `Run.result()` would: the failure's own class, TimedOut,
        Canceled, else RunFailed. Raises AssertionError where the run has not ended."""
        if self.status == "completed":
            return cast("O", self.output)
        raise self.error()

    def error(self) -> Failure:
        """What ended the run, as an exception. Raises AssertionError where nothing did."""
        if self.failure is None:
            raise AssertionError(f"{self.name} is {self.status}: {self.reason or 'no failure'}")
        record = msgspec.convert(dict(self.failure), FailureRecord)
        if self.status == "canceled":
            return Canceled(record.message)
        return failure_from(record, RunFailed)

    def calls_of(self, step: Step[..., Any] | str, /) -> list[PlayedCall]:
        """The attempts of one step."""
        name = step if isinstance(step, str) else step.name
        return [call for call in self.calls if call.step == name]
