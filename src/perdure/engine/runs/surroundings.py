"""Surroundings: what an attempt is told of its run, where its code asks for that.

Outputs of nodes that completed while the run was in memory are there; those recorded before may
stand apart in the store, and are fetched first.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from perdure.engine.handlers.port import Around
from perdure.kernel.machine import GraphMachine
from perdure.kernel.protocol import Handling

if TYPE_CHECKING:
    from perdure.engine.runs.live_run import LiveRun

Apart = list[tuple[str, tuple[int, int]]]


def around(live: LiveRun, handling: Handling) -> Around | Apart:
    """What the attempt is told; or, where not all outputs are in memory, where those stand that
    are missing: the first attempt after the run was loaded has them fetched for all that follow."""
    run, machine, recorded = live.run, live.machine, live.outputs
    if type(recorded) is not InMemory:
        missing = [(node, at) for node, at in recorded.items() if isinstance(at, tuple)]
        if missing:
            return missing
        live.outputs = recorded = InMemory(recorded)
    made = machine.outputs if isinstance(machine, GraphMachine) else {}
    return Around(run.input, Readable(made, recorded, handling.reads), run.metadata, run.noted)


class InMemory(dict[str, Any]):
    """Outputs recorded before this process held the run; none of them stands apart."""


class Readable(msgspec.Struct, eq=False):
    """The outputs that may be read (`reads`; None = all), looked up when one is asked for: a step
    has as many nodes before it as a saga has steps. `made`: while the run is in memory."""

    made: Mapping[str, Raw]
    recorded: InMemory
    reads: Container[str] | None

    def get(self, node: str) -> Raw | None:
        """The node's output, if it has one and it may be read."""
        found: Raw | None = self.made.get(node) or self.recorded.get(node)
        if found is None or (self.reads is not None and node not in self.reads):
            return None
        return found


def keep(live: LiveRun, apart: Apart, values: Sequence[bytes]) -> None:
    """What was missing is there now, and stays in memory with the run."""
    found = InMemory(live.outputs)
    for (node, _), value in zip(apart, values, strict=True):
        found[node] = Raw(value)
    live.outputs = found


def places(apart: Apart) -> Iterable[tuple[int, int]]:
    """Where the values stand."""
    return (place for _, place in apart)
