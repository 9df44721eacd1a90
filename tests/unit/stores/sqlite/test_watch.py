"""Watch: what changed is told once; looks grow rarer while nothing does, and end when closed."""

from __future__ import annotations

import asyncio

from perdure.stores.sqlite.watch import LATEST, SOONEST, Watch
from tests.virtual.loop import run


class File:
    """A file's version, as it is asked for."""

    def __init__(self) -> None:
        self.version: int | None = 1
        self.asked: list[float] = []
        self.changes = 0

    def ask(self) -> int | None:
        self.asked.append(asyncio.get_running_loop().time())
        return self.version

    def changed(self) -> None:
        self.changes += 1

    def pauses(self) -> list[float]:
        return [b - a for a, b in zip(self.asked, self.asked[1:], strict=False)]


def test_looks_grow_rarer_while_nothing_happens_and_frequent_again_after_a_change() -> None:
    async def main() -> None:
        file = File()
        watch = Watch(file.ask, file.changed)
        await asyncio.sleep(10)
        pauses = file.pauses()
        assert pauses[0] == SOONEST
        # The clock adds the pauses up: they come back with its rounding.
        assert [round(pause, 9) for pause in pauses] == sorted(round(pause, 9) for pause in pauses)
        assert abs(pauses[-1] - LATEST) < 1e-6
        assert file.changes == 0
        file.version = 2
        before = len(file.asked)
        await asyncio.sleep(LATEST + SOONEST * 1.5)
        assert file.changes == 1
        assert any(abs(pause - SOONEST) < 1e-6 for pause in file.pauses()[before - 1 :])
        watch.close()

    run(main())


def test_what_cannot_be_told_now_is_no_change() -> None:
    async def main() -> None:
        file = File()
        watch = Watch(file.ask, file.changed)
        file.version = None
        await asyncio.sleep(2)
        file.version = 1
        await asyncio.sleep(2)
        assert file.changes == 0
        watch.close()

    run(main())


def test_after_closing_nothing_is_asked() -> None:
    async def main() -> None:
        file = File()
        Watch(file.ask, file.changed).close()
        file.version = 2
        await asyncio.sleep(5)
        assert (len(file.asked), file.changes) == (1, 0)

    run(main())
