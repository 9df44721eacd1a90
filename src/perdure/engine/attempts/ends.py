"""How an attempt may end: with an outcome that the machine is told, or with the process."""

from __future__ import annotations

from typing import Final, TypeAlias

from perdure.kernel.events import NodeCompleted, NodeFailed

Report: TypeAlias = NodeCompleted | NodeFailed

#: What ends the process; a step that raises it is not to be kept from doing so (D-29).
ENDINGS: Final = (KeyboardInterrupt, SystemExit)


def ends_process(error: BaseException) -> bool:
    """Whether it goes on through the engine (D-29)."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(ENDINGS) is not None
    return isinstance(error, ENDINGS)
