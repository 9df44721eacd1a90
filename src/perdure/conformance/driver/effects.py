"""What the steps of the kit's programs did, by run: the effects that an outcome stands for.

Kept in this process's memory, whatever becomes of the engine: a driver's worker runs beside the
kit, and its effects are what the world has seen of it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Final

from perdure.model.step_context import current_step

#: By run id: what was done, oldest first.
DONE: Final[defaultdict[str, list[str]]] = defaultdict(list)
#: By run id: the gates that are open.
_OPEN: Final[defaultdict[str, set[str]]] = defaultdict(set)

#: How often gates and effects are looked at, in seconds.
LOOK: Final = 0.002
#: How long anything may take that is to happen, in seconds.
PATIENCE: Final = 30.0


def did(text: str) -> None:
    """A step did this."""
    DONE[current_step().run_id].append(text)


def open_gate(run: str, gate: str) -> None:
    """Let the run's steps through."""
    _OPEN[run].add(gate)


async def gate_of(gate: str) -> None:
    """Until the gate of this step's run is open."""
    run = current_step().run_id
    while gate not in _OPEN[run]:  # noqa: ASYNC110  # opened from any loop and thread
        await asyncio.sleep(LOOK)


async def until_done(run: str, text: str) -> None:
    """Until a step of the run did this. Raises AssertionError when it takes too long."""
    try:
        async with asyncio.timeout(PATIENCE):
            while text not in DONE[run]:  # noqa: ASYNC110  # done on any loop and thread
                await asyncio.sleep(LOOK)
    except TimeoutError:
        raise AssertionError(f"{text!r} was never done; done was {DONE[run]}") from None
