"""A workload at two lengths: what a step costs, told apart from its run's start and end."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures import Figure
from bench.places import Place
from bench.scale import Scale
from bench.throughput import Chain, measure


async def measure_lengths(
    name: str, short: Chain, long: Chain, places: Sequence[Place], scale: Scale
) -> list[Figure]:
    """The figures of both chains, one run and 64 runs at a time, and what they say apart."""
    few = await measure(short, places, (1, 64), scale)
    many = await measure(long, places, (1, 64), scale)
    parts = [
        part
        for one, other in zip(few, many, strict=True)
        for part in apart(name, (short.nodes, one), (long.nodes, other))
    ]
    return [*few, *many, *parts]


def apart(name: str, short: tuple[int, Figure], long: tuple[int, Figure]) -> tuple[Figure, Figure]:
    """What a step costs beside its run's start and end, and what those do: by the difference of
    runs of two lengths, each given with its number of steps."""
    (few, shorter), (many, longer) = short, long
    assert shorter.case == longer.case
    in_short, in_long = few * 1e6 / shorter.value, many * 1e6 / longer.value
    step = (in_long - in_short) / (many - few)
    return (
        Figure(name, f"{longer.case}: a step alone", step, "µs"),
        Figure(name, f"{longer.case}: start and end", in_short - few * step, "µs"),
    )
