"""The worker that is killed while its sagas ask for runs of other sagas, side by side, and undo.

Run as `python -m tests.chaos.families` with a Launch as JSON; says "up" once its engine is open.
"""

from __future__ import annotations

import asyncio

from perdure import Engine
from tests.chaos.program import Launch, launched, up
from tests.chaos.sagas import declined, hold, play, saga, slow, thread, undo, undo_thread, work

#: What is asked for: it ends well; it fails, and undoes; it ends only when it is asked to.
part = saga("part").step("b", thread, undo=undo_thread)
broken = saga("broken").step("b", work, undo=undo).step("d", declined)
lasting = saga("lasting").step("b", hold, undo=undo, undo_unknown=False)
CHILDREN = (part, broken, lasting)

FAMILIES = (
    saga("whole")
    .step("b", part, undo=undo, depends_on=["a"])
    .step("c", work, undo=undo, depends_on=["a"]),
    saga("bereaved")
    .step("b", part, undo=undo, depends_on=["a"])
    .step("c", thread, undo=undo_thread, depends_on=["a"])
    .step("d", declined, depends_on=["b", "c"]),
    saga("deserted")
    .step("b", broken, undo=undo, depends_on=["a"])
    .step("c", slow, undo=undo, depends_on=["a"]),
    saga("recalled", on_failure="cancel")
    .step("b", lasting, undo=undo, depends_on=["a"])
    .step("c", work, undo=undo, depends_on=["a"])
    .step("d", declined, depends_on=["c"]),
)


async def main(launch: Launch) -> None:
    url = f"sqlite:///{launch.db}?sync={launch.sync}"
    async with Engine(url, [*FAMILIES, *CHILDREN], grace=0) as engine:
        up()
        await asyncio.gather(*(play(engine, *one) for one in launch.runs))


if __name__ == "__main__":
    launched(main)
