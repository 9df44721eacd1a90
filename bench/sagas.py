"""Through the saga door: sagas of 5 and 50 bare steps, and W9, a saga of five steps that fails at
the last one and undoes the four before it.

What is counted are the attempts: steps, and in W9 undos as well. The feed is on and nobody listens,
as in every workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Final

from bench.chains import nothing
from bench.figures import Figure
from bench.places import Place
from bench.scale import Scale
from bench.throughput import Chain, measure
from perdure import Permanent, Saga, SagaContext

#: Steps of the sagas that end well.
LENGTHS: Final = (5, 50)
#: Steps of W9; the last one fails.
STEPS: Final = 5


async def bare(ctx: SagaContext[None]) -> None:
    """The smallest step, and the smallest undo."""


async def refuse(ctx: SagaContext[None]) -> None:
    """A step that fails for good."""
    raise Permanent(ValueError("no"))


def saga(steps: int) -> Chain:
    """So many bare steps, one after another."""
    built = Saga(f"bare-{steps}", NoneType)
    for at in range(steps):
        built = built.step(f"s{at}", bare)
    return Chain(f"saga of {steps}", built, nothing, nodes=steps)


def w9() -> Chain:
    """Four steps that are undone, since the fifth fails: nine attempts."""
    built = Saga("undone", NoneType)
    for at in range(STEPS - 1):
        built = built.step(f"s{at}", bare, undo=bare)
    built = built.step("last", refuse)
    return Chain("W9", built, nothing, nodes=2 * STEPS - 1, fails=True)


async def measure_sagas(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """The figures of every length, one run and 64 runs at a time."""
    figures: list[Figure] = []
    for steps in LENGTHS:
        figures += await measure(saga(steps), places, (1, 64), scale)
    return figures + [parts for pair in pairs_of(figures) for parts in apart(*pair)]


def pairs_of(figures: Sequence[Figure]) -> list[tuple[Figure, Figure]]:
    """The figures of short and of long sagas, each with the other of its place and load."""
    half = len(figures) // 2
    return list(zip(figures[:half], figures[half:], strict=True))


def apart(short: Figure, long: Figure) -> tuple[Figure, Figure]:
    """What a step costs beside its run's start and end, and what those do: by the difference of
    sagas of two lengths."""
    assert short.case == long.case
    few, many = LENGTHS
    in_short, in_long = few * 1e6 / short.value, many * 1e6 / long.value
    step = (in_long - in_short) / (many - few)
    return (
        Figure("saga", f"{long.case}: a step alone", step, "µs"),
        Figure("saga", f"{long.case}: start and end", in_short - few * step, "µs"),
    )
