"""Whoever starts runs and tells them things: it is killed too, and its successor says all again.

Run as a module with an Errand as JSON. It ends when all its runs have ended as they should. Every
signal has a dedupe key, and some are sent twice at once. A run that is stalled is noted on standard
output, and tried again.
"""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Any

import msgspec

from perdure import Client, NotFound, Run, RunActive, RunFinished, RunInfo, StoreError
from tests.chaos.waiting import children_of, expected, graph_of

EVERY = 0.15


class Errand(msgspec.Struct):
    """Runs number `first` to `last`, without the last."""

    db: str
    sync: str
    seed: int
    first: int
    last: int


async def signal(run: Run[Any], k: int) -> bool:
    """Send signal k; False when the run has ended without it."""
    times = random.choice((1, 1, 2))
    sends = [run.signal("go", {"k": k}, dedupe_key=f"go-{k}") for _ in range(times)]
    said = await asyncio.gather(*sends, return_exceptions=True)
    for answer in said:
        if isinstance(answer, BaseException) and not isinstance(answer, NotFound):
            raise answer
    return not any(isinstance(answer, NotFound) for answer in said)


async def tell(run: Run[Any], n: int) -> None:
    """All that the run is to be told, in order; each of it may have been said before."""
    name = run.workflow.removesuffix("-code")
    await asyncio.sleep(random.choice((0.4, 6, 6) if name.startswith("stuck") else (0, 0.1, 0.4)))
    if name.startswith("stuck"):
        await run.cancel("enough")
    if name not in ("hold", "gated"):
        return
    try:
        if n % 3 == 0:
            await run.pause()
        await signal(run, 1)
        await asyncio.sleep(random.choice((0, 0.1)))
        await signal(run, 2)
        if n % 3 == 0:
            await run.unpause()
    except RunFinished:  # what it was still to be told, it hears when it is retried
        return


async def look_at(run: Run[Any]) -> RunInfo:
    """The run, which is tried again if it is stalled."""
    info = await run.describe()
    if info.stalled is not None:
        sys.stdout.write(f"stalled {run}: {info.stalled}\n")
        sys.stdout.flush()
        await run.unpause()
    return info


async def have_ended(client: Client, n: int) -> bool:
    """Whether all runs that this one asked for have ended, too."""
    ended = True
    for workflow, id in children_of(n):
        try:
            ended &= (await look_at(client.get(workflow, id))).status != "running"
        except NotFound:
            ended &= expected(n)[0] == "canceled"  # it was canceled before it asked
    return ended


async def go_on(client: Client, run: Run[Any], n: int) -> bool:
    """Help the run along; whether it has ended as it should."""
    info = await look_at(run)
    ended = await have_ended(client, n)
    if info.status == "failed" and run.workflow.startswith("gated"):
        await run.retry(failed=True, input={"n": n, "ok": True})
        await signal(run, 2)
        await run.unpause()
    return ended and info.status == expected(n)[0]


async def tend(client: Client, n: int) -> None:
    """One run from its start to its end."""
    run: Run[Any] | None = None
    told = False
    while True:
        try:
            if run is None:
                run = await client.start(
                    graph_of(n), {"n": n, "ok": False}, id=str(n), if_exists="join"
                )
            if not told:
                await tell(run, n)
                told = True
            if await go_on(client, run, n):
                return
        except (RunActive, RunFinished):
            pass  # it has moved on meanwhile: look again
        except StoreError as error:
            sys.stderr.write(f"{n}: {error}\n")
        await asyncio.sleep(EVERY)


async def main(errand: Errand) -> None:
    random.seed(errand.seed)
    async with Client(f"sqlite:///{errand.db}?sync={errand.sync}") as client:
        over = {
            int(info.id) async for info in client.runs()
            if info.id.isdigit() and info.status == expected(int(info.id))[0]
            and not children_of(int(info.id))
        }  # fmt: skip
        await asyncio.gather(
            *(tend(client, n) for n in range(errand.first, errand.last) if n not in over)
        )


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Errand)))
