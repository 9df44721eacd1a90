"""Surroundings: what an attempt is told of its run, where its code asks for that.

Outputs of nodes that completed while the run was in memory are there; those recorded before may
stand apart in the store, and are fetched first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Raw

from perdure.engine.handlers.port import Around
from perdure.kernel.machine import GraphMachine
from perdure.kernel.protocol import Handling

if TYPE_CHECKING:
    from perdure.engine.live_run import LiveRun

Apart = list[tuple[str, tuple[int, int]]]


def around(live: LiveRun, handling: Handling) -> Around | Apart:
    """What the attempt is told; or, where that is not all in memory, where what is missing stands.

    `outputs`: of the completed ones of the nodes that it reads."""
    run, machine = live.run, live.machine
    held = machine.outputs if isinstance(machine, GraphMachine) else {}
    if not live.outputs:  # all were made while it is in memory
        return Around(run.input, Readable(held, handling.reads), run.metadata, run.noted)
    outputs: dict[str, Raw] = {}
    missing: Apart = []
    nodes = run.nodes
    for node in nodes if handling.reads is None else handling.reads:
        state = nodes.get(node)
        if state is None or state.status not in ("completed", "compensated"):
            continue
        value = held.get(node)
        if value is None:
            place = live.outputs.get(node)
            if isinstance(place, tuple):
                missing.append((node, place))
                continue
            value = place
        if value is not None:
            outputs[node] = value
    return missing or Around(run.input, outputs, run.metadata, run.noted)


class Readable(Mapping[str, Raw]):
    """Of the outputs in memory those that may be read (None = all), looked up when one is asked
    for: a step has as many nodes before it as a saga has steps."""

    __slots__ = ("_outputs", "_reads")

    def __init__(self, outputs: Mapping[str, Raw], reads: tuple[str, ...] | None) -> None:
        self._outputs = outputs
        self._reads = reads

    def __getitem__(self, node: str) -> Raw:
        if self._reads is not None and node not in self._reads:
            raise KeyError(node)
        return self._outputs[node]

    def __iter__(self) -> Iterator[str]:
        nodes = self._outputs if self._reads is None else self._reads
        return (node for node in nodes if node in self._outputs)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def keep(live: LiveRun, apart: Apart, values: Sequence[bytes]) -> None:
    """What was missing is there now, and stays in memory with the run."""
    found = dict(live.outputs)
    for (node, _), value in zip(apart, values, strict=True):
        found[node] = Raw(value)
    live.outputs = found


def places(apart: Apart) -> Iterable[tuple[int, int]]:
    """Where the values stand."""
    return (place for _, place in apart)
