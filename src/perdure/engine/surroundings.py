"""Surroundings: what an attempt is told of its run, where its code asks for that.

Outputs of nodes that completed while the run was in memory are there; those recorded before may
stand apart in the store, and are fetched first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    outputs: dict[str, Raw] = {}
    missing: Apart = []
    held = machine.outputs if isinstance(machine, GraphMachine) else {}
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


def keep(live: LiveRun, apart: Apart, values: Sequence[bytes]) -> None:
    """What was missing is there now, and stays in memory with the run."""
    found = dict(live.outputs)
    for (node, _), value in zip(apart, values, strict=True):
        found[node] = Raw(value)
    live.outputs = found


def places(apart: Apart) -> Iterable[tuple[int, int]]:
    """Where the values stand."""
    return (place for _, place in apart)
