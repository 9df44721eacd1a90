"""Figure: one number with what it is held against. Samples: repeats of a pair of rates.

A workload and its ceiling are timed in turn, so that a machine that slows down slows both.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Coroutine
from statistics import median
from typing import Any

import msgspec


class Figure(msgspec.Struct):
    """`value` in `unit`; `ceiling` in the same unit; `ratio` the median of the repeats' own.
    `met` is None where there is no budget."""

    workload: str
    case: str
    value: float
    unit: str
    ceiling: float | None = None
    ceiling_is: str = ""
    ratio: float | None = None
    budget: str = ""
    met: bool | None = None
    note: str = ""
    spread: tuple[float, float] | None = None


class Budget(msgspec.Struct, frozen=True):
    """Met when any of the limits set is: so much of the ceiling, or so many a second. `sketch`: how
    many a second the sketch made where the rate was set; as much of what it makes here will do."""

    share: float | None = None
    rate: float | None = None
    micros: float | None = None
    sketch: float | None = None

    def text(self, unit: str) -> str:
        """As people read it."""
        parts = []
        if self.micros is not None:
            parts.append(f"<= {self.micros:g} µs a {unit}")
        if self.rate is not None:
            parts.append(f">= {self.rate:,.0f}/s")
        if self.share is not None:
            parts.append(f">= {self.share:.0%} of ceiling")
        if self.rate is not None and self.sketch is not None:
            parts.append(f">= {self.rate / self.sketch:.0%} of the sketch")
        return " or ".join(parts)

    def met(self, rate: float, ratio: float) -> bool:
        """Whether a figure keeps it."""
        return (
            (self.micros is not None and rate * self.micros >= 1e6)
            or (self.rate is not None and rate >= self.rate)
            or (self.share is not None and ratio >= self.share)
        )


def beside_sketch(
    figure: Figure, budget: Budget, rates: list[float], sketches: list[float]
) -> None:
    """What the sketch makes in the same run, and whether the figure is as much of that as it was to
    be where the budget was set."""
    assert budget.rate is not None and budget.sketch is not None  # noqa: PT018
    share = median(rate / most for rate, most in zip(rates, sketches, strict=True))
    figure.met = figure.met or share >= budget.rate / budget.sketch
    figure.note = (
        f"{share:.0%} of the sketch, which makes {median(sketches):,.0f}/s here and made "
        f"{budget.sketch:,.0f} where the budget was set"
    )


Timed = Callable[[], Coroutine[Any, Any, float]]


async def compare(repeats: int, run: Timed, ceiling: Timed) -> tuple[list[float], list[float]]:
    """The rates of both, measured in turn."""
    rates, ceilings = [], []
    for _ in range(repeats):
        ceilings.append(await ceiling())
        rates.append(await run())
    return rates, ceilings


def rated(
    workload: str,
    case: str,
    unit: str,
    rates: list[float],
    ceilings: list[float],
    ceiling_is: str,
    budget: Budget | None = None,
) -> Figure:
    """The figure of repeated pairs of rates."""
    ratio = median(rate / most for rate, most in zip(rates, ceilings, strict=True))
    rate = median(rates)
    return Figure(
        workload,
        case,
        rate,
        f"{unit}s/s",
        median(ceilings),
        ceiling_is,
        ratio,
        budget.text(unit) if budget else "",
        budget.met(rate, ratio) if budget else None,
        spread=(min(rates), max(rates)),
    )


async def seconds(work: Awaitable[Any], *, busy: bool = False) -> float:
    """How long it takes, without what was garbage before.

    `busy`: it never waits for anything, so the processor's time is counted; on an idle machine
    that is the same, on a shared one it leaves the neighbours out.
    """
    clock = time.process_time if busy else time.perf_counter
    gc.collect()
    begin = clock()
    await work
    return clock() - begin
