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
from bench.lengths import measure_lengths
from bench.places import Place
from bench.scale import Scale
from bench.throughput import Chain
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
    """The figures of both lengths."""
    short, long = LENGTHS
    return await measure_lengths("saga", saga(short), saga(long), places, scale)
