"""Opening: the start of a workflow's run, without a machine.

Nothing of its code runs yet, so there is nothing to decide: what is asked for is recorded. It comes
to what `on_run_started` of a machine comes to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.kernel.actions import OpenRun, Transition
from perdure.kernel.run import Run

if TYPE_CHECKING:
    from perdure.kernel.code.running import Program
    from perdure.kernel.events import RunStarted


def opened(program: Program, event: RunStarted, now: int) -> tuple[Run, Transition] | None:
    """A new run's snapshot once it has started, and the start; None for one that is refused."""
    if event.start_node is not None:
        return None
    start = OpenRun(
        program.name, event.id, program.version, program.hash, event.python, event.input, None,
        event.config, None, event.metadata, event.deadline, event.trace,
    )  # fmt: skip
    run = Run(
        program.name, event.id, program.version, program.hash, event.python, "running",
        event.input, event.config, event.metadata, event.deadline, trace=event.trace, at=now,
    )  # fmt: skip
    return run, Transition(now, [start])
