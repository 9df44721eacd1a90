"""Random workflow programs on real engines in virtual time: their steps take a while or fail, rows
become durable late, signals and cancels come whenever, engines die and others go on. Every run
ends, none stalls, and nothing is done twice unless somebody died."""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import Any, Final

import pytest

from perdure import Canceled, Failure, NotFound, Retry, TimedOut, current_step, step
from perdure.client.run import Run
from perdure.flow.workflow import Workflow
from tests.property.workflow import programs
from tests.virtual.engines import killed
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

PROGRAMS: Final = 60
#: What may be said at warning: attempts fail, engines die, and the programs leave tasks behind.
EXPECTED: Final = ("attempt ", "exception was never retrieved", "its owners died")
#: When engines die, in seconds; the last ones live for as long as it takes.
DEATHS: Final = (0.0003, 0.0013, 0.01, 1, 5, 20)
LIVES: Final = 10
#: (idempotency key, attempt) of all that was begun.
begun: list[tuple[str, int]] = []
chance = Random(0)


@step(retry=Retry(2, initial=1))
async def labour(number: int) -> int:
    now = current_step()
    begun.append((now.idempotency_key, now.attempt))
    if chance.random() < 0.6:
        await asyncio.sleep(chance.choice([0, 0.0005, 0.5, 3, 12]))
    if chance.random() < 0.15:
        raise ValueError("no")
    return number


class Labourer(programs.Player):
    async def do_step(self, number: int) -> int:
        return await labour(number)


async def tell(started: Run[Any], random: Random, *, cancel: bool) -> None:
    """Send it whatever it may wait for, and perhaps a cancel among that."""
    for count in range(100_000):
        await asyncio.sleep(random.choice([0, 0.0005, 0.7, 5, 50]))
        try:
            if cancel and count == 8:
                await started.cancel("enough")
            await started.signal(random.choice(programs.NAMES), random.randint(1, 9))
        except NotFound:
            return


async def has_ended(started: Run[Any], within: float) -> bool:
    try:
        await started.result(timeout=within)
    except TimedOut:
        return await started.status() != "running"
    except (Canceled, Failure):
        return True
    return True


async def play(definition: Workflow[Any, Any], random: Random) -> int:
    """Run it to its end; how many engines died on the way."""
    store = random.choice([LateStore, VirtualStore])()
    dies, cancel = random.random() < 0.5, random.random() < 0.2
    for life in range(LIVES + 1):
        within = random.choice(DEATHS) if dies and life < LIVES else 86_400
        park_after = random.choice([0.2, 10])
        async with killed(
            store, definition, programs.other, labour, poll=0.5, park_after=park_after
        ) as engine:
            started = await engine.start(definition, None, id="1", if_exists="join")
            telling = asyncio.create_task(tell(started, random, cancel=cancel))
            over = await has_ended(started, within)
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            assert (await started.describe()).stalled is None
            if over:
                await asyncio.sleep(1)
                assert not engine._shell.live
                return life
    pytest.fail("it has not ended")


@pytest.mark.parametrize("part", range(4))
def test_a_program_ends_on_whatever_engines_and_nothing_is_done_twice_in_vain(
    part: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(programs, "Player", Labourer)
    deaths = 0
    for seed in range(4_000_000 + PROGRAMS * part, 4_000_000 + PROGRAMS * (part + 1)):
        random = Random(seed)
        chance.seed(seed)
        begun.clear()
        caplog.clear()
        made = programs.workflow_of(programs.program(random), random.choice([1, 1, 1, 2, 3]))
        with caplog.at_level(logging.WARNING, "perdure"):
            died = run(play(made, random))
        said = [text for text in caplog.messages if not any(one in text for one in EXPECTED)]
        assert said == [], f"program of seed {seed}"
        assert died or len(set(begun)) == len(begun), f"program of seed {seed}"
        deaths += died
    assert deaths > PROGRAMS / 4
