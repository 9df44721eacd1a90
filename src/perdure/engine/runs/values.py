"""Values that a machine asks for: in memory, or apart in the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Raw

from perdure.kernel.protocol import Load, Loaded

#: Where a recorded value stands: in memory, or in the payload (seq, n).
Place = Raw | tuple[int, int]
Places = Mapping[str, Place]
ReadMany = Callable[[Sequence[tuple[int, int]]], Awaitable[Sequence[bytes]]]


def apart(asked: Load, outputs: Places, signals: Places) -> list[tuple[int, int]]:
    """Where those of the values stand that are not in memory."""
    places = (*map(outputs.get, asked.outputs), *map(signals.get, asked.signals))
    return [place for place in places if isinstance(place, tuple)]


def answer(
    asked: Load, outputs: Places, signals: Places, found: Mapping[tuple[int, int], Raw]
) -> Loaded:
    """The values there are; one that is missing is the machine's to complain of."""
    return Loaded(_held(asked.outputs, outputs, found), _held(asked.signals, signals, found))


async def fetched(asked: Load, outputs: Places, signals: Places, read: ReadMany) -> Loaded:
    """The values, those apart read from the store. Raises what `read` raises."""
    places = apart(asked, outputs, signals)
    found = dict(zip(places, map(Raw, await read(places)), strict=True)) if places else {}
    return answer(asked, outputs, signals, found)


def _held(
    names: Sequence[str], places: Places, found: Mapping[tuple[int, int], Raw]
) -> dict[str, Raw]:
    held = {}
    for name in names:
        place = places.get(name)
        if isinstance(place, tuple):
            held[name] = found[place]
        elif place is not None:
            held[name] = place
    return held
