"""The watchdog: it names what blocks the loop, keeps the lease alive, and gives up in time."""

from __future__ import annotations

import asyncio
import logging
import time
from types import SimpleNamespace
from typing import Any

import pytest

from perdure.engine.worker.watchdog import Watchdog
from perdure.flow.step import step
from perdure.model.errors import StoreError
from tests.virtual.engines import engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

LEASE = 30.0


class Loop:
    """A loop that is asked to turn, and does when the test says so."""

    def __init__(self, turns: list[Any]) -> None:
        self.call_soon_threadsafe = turns.append


class Rig:
    """A watchdog without its thread: the test is the thread, and says what time it is."""

    def __init__(self) -> None:
        self.extended = 0
        self.alive = True
        self.away = False
        store = SimpleNamespace(extend=self.extend)
        self.shell: Any = SimpleNamespace(store=store, worker="w1", lease_over=0.0)
        self.dog = Watchdog(self.shell, lease=LEASE)
        self.turns: list[Any] = []
        self.dog._loop = Loop(self.turns)  # type: ignore[assignment]
        self.dog._asked = False
        self.now = self.dog._turned = self.dog._extended = time.monotonic()
        self.shell.lease_over = self.now + LEASE

    def extend(self, worker: str) -> bool:
        assert worker == "w1"
        if self.away:
            raise StoreError("away")
        self.extended += 1
        return self.alive

    def look(self, after: float) -> None:
        self.now += after
        self.dog.look(self.now)

    def turn(self) -> None:
        """The loop turns."""
        while self.turns:
            self.turns.pop()()
        self.dog._turned = self.now


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_loop_that_turns_is_asked_once_at_a_time_and_nothing_is_said(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.look(0.5)
    assert len(rig.turns) == 1
    rig.look(0.1)
    assert len(rig.turns) == 1, "one question at a time"
    rig.turn()
    rig.look(0.5)
    assert len(rig.turns) == 1
    assert caplog.records == []


def test_what_blocks_the_loop_is_named_once(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    # scenario 119
    import threading

    rig.dog._loop_thread = threading.get_ident()
    rig.look(0.6)
    for _ in range(5):
        rig.look(0.5)
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert "blocked for 1.1 s" in record.getMessage()
    assert "test_what_blocks_the_loop_is_named_once" in record.getMessage()
    rig.turn()
    rig.look(0.5)
    for _ in range(3):
        rig.look(0.5)
    assert len(caplog.records) == 2, "and again the next time"


def test_many_tasks_that_take_their_turns_are_not_blamed(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [object() for _ in range(10)]
    at_work = iter(seen)  # each look finds another one
    monkeypatch.setattr(
        "perdure.engine.worker.watchdog.asyncio.current_task", lambda loop: next(at_work)
    )
    for _ in range(10):
        rig.look(0.5)
    assert caplog.records == []


def test_the_lease_is_extended_while_the_loop_has_no_time_for_it(rig: Rig) -> None:
    for _ in range(40):
        rig.look(0.5)
        rig.turn()
    assert 1 <= rig.extended <= 4
    assert rig.shell.lease_over > rig.now + LEASE / 2
    before = rig.extended
    for _ in range(40):
        rig.shell.lease_over = rig.now + LEASE  # as beats do
        rig.look(0.5)
        rig.turn()
    assert rig.extended == before, "the loop beats by itself"


def test_a_loop_that_is_deaf_for_half_a_lease_loses_it(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(200):
        rig.look(0.5)
    assert rig.shell.lease_over < rig.now, "it ran out"
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "its runs go on elsewhere" in errors[0]
    deaf_since = rig.extended
    rig.look(0.5)
    assert rig.extended == deaf_since
    rig.turn()
    rig.look(0.5)
    assert rig.extended == deaf_since + 1, "once it turns again, so does this"


def test_a_worker_that_was_declared_dead_extends_nothing(rig: Rig) -> None:
    rig.alive = False
    before = rig.shell.lease_over
    for _ in range(40):
        rig.look(0.5)
        rig.turn()
    assert rig.extended > 0
    assert rig.shell.lease_over == before


def test_a_store_that_is_away_is_asked_again(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.away = True
    for _ in range(40):
        rig.look(0.5)
        rig.turn()
    assert "did not extend the lease" in caplog.text
    rig.away = False
    for _ in range(20):
        rig.look(0.5)
        rig.turn()
    assert rig.extended > 0


@pytest.mark.parametrize("by", ["watchdog", "beats"])
def test_a_store_that_is_away_is_told_of_once_and_once_when_it_is_back(
    rig: Rig, caplog: pytest.LogCaptureFixture, by: str
) -> None:
    for _ in range(2):
        caplog.clear()
        rig.away = True
        for _ in range(200):
            rig.look(0.5)
            rig.turn()
        (away,) = [record.getMessage() for record in caplog.records]
        assert "did not extend the lease of this worker (it is asked again): away" in away
        rig.away = False
        for _ in range(200):
            if by == "beats":
                rig.shell.lease_over = rig.now + LEASE
            rig.look(0.5)
            rig.turn()
        assert [record.getMessage() for record in caplog.records] == [
            away,
            "the lease of this worker is extended again",
        ]


def test_where_there_are_no_threads_left_an_engine_says_that_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(thread: object) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        monkeypatch.setattr("threading.Thread.start", start)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            await engine_on(VirtualStore()).__aenter__()

    run(main())


def test_its_thread_ends_with_the_engine() -> None:
    @step
    async def work() -> str:
        return "done"

    g = graph("g", [task("work")])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, work) as engine:
            thread = engine._shell.watchdog._thread
            assert thread is not None
            assert thread.daemon
            assert thread.is_alive()
            assert await engine.run(g, id="1") == {"work": "done"}
        assert not thread.is_alive()

    run(main())


@pytest.mark.parametrize("asked", [False, True])
def test_its_thread_ends_with_the_loop(monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    """Also where the loop ends while it is being asked whether it turns."""
    monkeypatch.setattr("perdure.engine.worker.watchdog.LOOK_EVERY", 0.001)
    shell: Any = SimpleNamespace(
        store=SimpleNamespace(extend=lambda w: True), worker="w", lease_over=time.monotonic() + 99
    )
    dog = Watchdog(shell)

    async def main() -> None:
        dog.open()
        if asked:
            monkeypatch.setattr(dog, "_answer", lambda: None)
            await asyncio.sleep(0.01)

    asyncio.run(main())
    assert dog._thread is not None
    dog._thread.join(20)
    assert not dog._thread.is_alive()
