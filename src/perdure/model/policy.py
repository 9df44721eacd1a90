"""Retry, as users write it, and RetryPolicy, the record the kernel decides with (D-35).

One policy serves every door. `backoff` never overflows: the delay before attempt n+1 saturates
at the cap, factors that are not finite or below 1 count as 1 (W-9, W-11, SX-7).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Final, TypeAlias, final

import msgspec

from perdure.model.duration_forms import Duration
from perdure.model.durations import MAX_DURATION, SECOND, microseconds
from perdure.model.errors import InvalidOptions

RetryOn: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]


class RetryPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The recorded policy. Times are microseconds; `max_delay` 0 = no cap, `max_elapsed` 0 = none.

    `retry_on`/`never_on` hold failure kinds, as graph documents write them; classes and
    predicates of `Retry` stay with the step and are judged where it runs.
    """

    attempts: int = 1
    initial: int = SECOND
    factor: float = 2.0
    max_delay: int = 30 * SECOND
    jitter: float = 0.0
    max_elapsed: int = 0
    retry_on: tuple[str, ...] = ()
    never_on: tuple[str, ...] = ()

    def backoff(self, failed: int) -> int:
        """The delay in µs after the `failed`-th failed attempt (from 1), before jitter."""
        if self.initial <= 0:
            return 0
        cap = self.max_delay or MAX_DURATION
        factor = self.factor if math.isfinite(self.factor) and self.factor > 1 else 1.0
        try:
            delay = self.initial * factor ** (max(failed, 1) - 1)
        except OverflowError:
            return min(cap, MAX_DURATION)
        return min(int(min(delay, MAX_DURATION)), cap)

    def delay(self, failed: int, roll: float) -> int:
        """`backoff` spread by ±jitter; `roll` is chance in [0, 1), injected."""
        delay = self.backoff(failed)
        if self.jitter:
            delay = int(delay * (1 + self.jitter * (2 * roll - 1)))
        return min(delay, MAX_DURATION)

    def allows_kind(self, kind: str) -> bool:
        """Whether the document's retry_on/never_on let a failure of this kind be retried."""
        if kind in self.never_on:
            return False
        return not self.retry_on or kind in self.retry_on


NO_RETRY: Final = RetryPolicy()


@final
class Retry:
    """How often and when a failed attempt is repeated. `Retry(5)` is enough.

    attempts counts executions, not repeats. Delays: `initial` × `factor` each time, at most
    `max_delay` (None or 0 = no cap), spread by ±`jitter` (0..1); `max_elapsed` ends the attempts
    after that time. `retry_on`: classes, or a predicate of the exception; `never_on` wins.
    Raises InvalidOptions.
    """

    __slots__ = ("never_on", "policy", "retry_on")

    def __init__(
        self,
        attempts: int,
        *,
        initial: Duration = 1,
        factor: float = 2,
        max_delay: Duration | None = 30,
        jitter: float = 0.0,
        max_elapsed: Duration | None = None,
        retry_on: RetryOn = Exception,
        never_on: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> None:
        self.policy = checked_policy(
            attempts=attempts,
            initial=microseconds(initial, "initial"),
            factor=factor,
            max_delay=microseconds(max_delay or 0, "max_delay"),
            jitter=jitter,
            max_elapsed=microseconds(max_elapsed or 0, "max_elapsed"),
        )
        if not callable(retry_on) and not _are_exceptions(retry_on):
            raise InvalidOptions(
                f"retry_on {retry_on!r}: use an exception class, a tuple of them or a predicate"
            )
        if not _are_exceptions(never_on):
            raise InvalidOptions(
                f"never_on {never_on!r}: use an exception class or a tuple of them"
            )
        self.retry_on = retry_on
        self.never_on = never_on

    def retries(self, error: Exception) -> bool:
        """Whether this error may be tried again, attempts permitting."""
        if isinstance(error, self.never_on):
            return False
        if isinstance(self.retry_on, (type, tuple)):
            return isinstance(error, self.retry_on)
        return bool(self.retry_on(error))

    def __repr__(self) -> str:
        return f"Retry({self.policy.attempts})"


def checked_policy(
    *,
    attempts: int,
    initial: int = SECOND,
    factor: float = 2.0,
    max_delay: int = 30 * SECOND,
    jitter: float = 0.0,
    max_elapsed: int = 0,
    retry_on: tuple[str, ...] = (),
    never_on: tuple[str, ...] = (),
) -> RetryPolicy:
    """A RetryPolicy of these values, or InvalidOptions saying which one is wrong."""
    if not _is_number(attempts) or attempts < 1 or attempts % 1:
        raise InvalidOptions(f"retry attempts {attempts!r}: use a whole number from 1")
    if not _is_number(factor):
        raise InvalidOptions(f"retry factor {factor!r}: use a number")
    if not _is_number(jitter) or not 0 <= jitter <= 1:
        raise InvalidOptions(f"retry jitter {jitter!r}: use a number from 0 to 1")
    if max_delay and max_delay < initial:
        raise InvalidOptions(
            f"retry max_delay ({max_delay / SECOND:g} s) is below initial "
            f"({initial / SECOND:g} s): raise it, or 0 for no cap"
        )
    return RetryPolicy(
        attempts=int(attempts),
        initial=initial,
        factor=_finite(factor),
        max_delay=max_delay,
        jitter=float(jitter),
        max_elapsed=max_elapsed,
        retry_on=retry_on,
        never_on=never_on,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_exceptions(kinds: object) -> bool:
    members = kinds if isinstance(kinds, tuple) else (kinds,)
    return all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in members)


def _finite(factor: float) -> float:
    try:
        return float(factor) if math.isfinite(factor) else 1.0
    except OverflowError:  # a whole number beyond the largest float
        return sys.float_info.max


def as_retry(retry: int | Retry) -> Retry:
    """`retry=5` is short for `Retry(5)`."""
    return retry if isinstance(retry, Retry) else Retry(retry)
