"""Writer: inline while commits are fast, on the thread otherwise; one answer to each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from perdure.model.errors import StoreError
from perdure.stores.sqlite import writer as module
from perdure.stores.sqlite.driver import Error
from perdure.stores.sqlite.writer import INLINE_BUDGET, Writer

HERE = Path("runs.db")


class Busy(Error):  # type: ignore[misc, valid-type]
    sqlite_errorcode = 5


class Broken(Error):  # type: ignore[misc, valid-type]
    sqlite_errorcode = 11


class FakeConnection:
    """Knows only whether a transaction is open, and the checkpoints asked for."""

    def __init__(self) -> None:
        self.in_transaction = False
        self.executed: list[str] = []

    def execute(self, sql: str) -> FakeConnection:
        self.executed.append(sql)
        if sql == "ROLLBACK":
            self.in_transaction = False
        return self

    def fetchone(self) -> tuple[int, int, int]:
        return 0, 100, 100


class Clock:
    """What perf_counter says; work moves it on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "perf_counter", made)
    return made


def play(scene: Callable[[Writer, FakeConnection], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        db = FakeConnection()
        writer = Writer(db, HERE, timeout=0.2, **options)  # type: ignore[arg-type]
        try:
            await scene(writer, db)
        finally:
            await writer.close(lambda db: None)

    asyncio.run(main())


def on_thread(_: Any) -> str:
    return threading.current_thread().name


def test_work_is_done_inline_and_answered_before_the_call_returns(clock: Clock) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        answers: list[object] = []
        writer.submit(on_thread, answers.append)
        assert answers == ["MainThread"]

    play(scene)


def test_a_large_batch_goes_to_the_thread(clock: Clock) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        assert await writer.call(on_thread, rows=900) == "perdure-writer"
        assert await writer.call(on_thread, rows=100) == "MainThread"

    play(scene)


def test_work_to_be_done_aside_never_keeps_the_loop_waiting(clock: Clock) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        answer = asyncio.get_running_loop().create_future()
        writer.submit(on_thread, answer.set_result, aside=True)
        assert not answer.done()
        assert await answer == "perdure-writer"
        assert await writer.call(on_thread) == "MainThread"

    play(scene)


def test_after_some_slow_commits_work_goes_to_the_thread_and_is_tried_inline_later(
    clock: Clock,
) -> None:
    def slow(_: Any) -> str:
        clock.now += 10 * INLINE_BUDGET
        return threading.current_thread().name

    async def scene(writer: Writer, db: FakeConnection) -> None:
        for _ in range(3):
            assert await writer.call(slow) == "MainThread"
        assert await writer.call(slow) == "perdure-writer"
        assert await writer.call(on_thread) == "perdure-writer"
        clock.now += 2.0
        assert await writer.call(slow) == "MainThread"
        assert await writer.call(on_thread) == "perdure-writer"
        clock.now += 2.0
        assert await writer.call(on_thread) == "MainThread"
        assert await writer.call(on_thread) == "MainThread"

    play(scene)


def test_work_behind_queued_work_waits_its_turn(clock: Clock) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        gate, order = threading.Event(), []
        first = asyncio.ensure_future(writer.call(lambda db: gate.wait(5), rows=10_000))
        await asyncio.sleep(0)
        writer.submit(lambda db: order.append(on_thread(db)), lambda answer: None)
        assert order == []
        gate.set()
        assert await first
        await writer.call(lambda db: None)
        assert order == ["perdure-writer"]

    play(scene)


def test_a_lock_held_elsewhere_is_waited_for_on_the_thread(clock: Clock) -> None:
    # scenario 121
    async def scene(writer: Writer, db: FakeConnection) -> None:
        tries: list[str] = []

        def locked_twice(_: Any) -> int:
            db.in_transaction = True
            tries.append(threading.current_thread().name)
            if len(tries) < 3:
                raise Busy("database is locked")
            db.in_transaction = False
            return len(tries)

        assert await writer.call(locked_twice) == 3
        assert tries == ["MainThread", "perdure-writer", "perdure-writer"]
        assert db.executed.count("ROLLBACK") == 2

    play(scene)


def test_a_lock_held_for_too_long_is_a_store_error_that_names_the_file(clock: Clock) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        def locked(_: Any) -> None:
            raise Busy("database is locked")

        with pytest.raises(StoreError, match=r"runs\.db is locked by another process"):
            await writer.call(locked)

    play(scene)


@pytest.mark.parametrize("rows", [1, 10_000], ids=["inline", "thread"])
def test_an_error_is_answered_once_and_its_transaction_rolled_back(clock: Clock, rows: int) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        def damaged(_: Any) -> None:
            db.in_transaction = True
            raise Broken("malformed")

        with pytest.raises(StoreError, match="is damaged"):
            await writer.call(damaged, rows)
        assert not db.in_transaction
        assert await writer.call(lambda db: "goes on", rows) == "goes on"

    play(scene)


@pytest.mark.parametrize("rows", [1, 10_000], ids=["inline", "thread"])
def test_nothing_is_done_inside_a_transaction_that_could_not_be_rolled_back(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        done: list[str] = []

        def damaged(_: Any) -> None:
            db.in_transaction = True
            raise Broken("malformed")

        def refuse(sql: str) -> FakeConnection:
            raise Broken(f"no {sql}")

        with monkeypatch.context() as patch:
            patch.setattr(db, "execute", refuse)
            with pytest.raises(StoreError, match="malformed"):
                await writer.call(damaged, rows)
            for few_or_many in (1, 10_000):
                with pytest.raises(StoreError, match="no ROLLBACK"):
                    await asyncio.wait_for(
                        writer.call(lambda db: done.append("early"), few_or_many), 10
                    )
        await writer.call(lambda db: done.append("goes on"), rows)
        assert done == ["goes on"]
        assert not db.in_transaction

    play(scene)


@pytest.mark.parametrize("rows", [1, 10_000], ids=["inline", "thread"])
@pytest.mark.parametrize("fault", [OverflowError("too large"), TypeError("not text")], ids=str)
def test_what_can_never_be_written_is_not_taken_for_trouble_of_the_store(
    clock: Clock, rows: int, fault: Exception
) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        def impossible(_: Any) -> None:
            db.in_transaction = True
            raise fault

        with pytest.raises(type(fault)):
            await writer.call(impossible, rows)
        assert not db.in_transaction

    play(scene)


class Interrupted:
    """A gate that is taken by a call which an interrupt follows, as it may any call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.locked = self._lock.locked

    def acquire(self, blocking: bool = True) -> bool:
        if self._lock.acquire(blocking):
            raise KeyboardInterrupt
        return False

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:  # no call: nothing comes between this and what is within
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.parametrize(
    "use",
    [
        lambda writer: writer.peek(on_thread),
        lambda writer: writer.submit(on_thread, lambda _: None),
    ],
    ids=["look", "write"],
)
def test_an_interrupt_does_not_leave_the_gate_shut(
    clock: Clock, use: Callable[[Writer], object]
) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        gate: Any = Interrupted()
        before, writer._gate = writer._gate, gate
        try:
            with suppress(KeyboardInterrupt):
                use(writer)
        finally:
            writer._gate = before
        assert not gate.locked()

    play(scene)


def test_nobody_looks_while_the_thread_is_at_work(clock: Clock) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        assert writer.peek(on_thread) == "MainThread"
        may_end = threading.Event()
        # Enough for the thread, too few for the log to be copied after it, on the thread again.
        work = asyncio.ensure_future(writer.call(lambda _: may_end.wait(10), rows=300))
        await asyncio.sleep(0)
        assert writer.peek(on_thread) is None
        may_end.set()
        await work
        assert writer.peek(on_thread) == "MainThread"

    play(scene)


def test_a_callback_that_waits_no_more_does_not_hinder_the_others(clock: Clock) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        waiting = asyncio.ensure_future(writer.call(on_thread, rows=10_000))
        await asyncio.sleep(0)
        waiting.cancel()
        assert await writer.call(on_thread, rows=10_000) == "perdure-writer"

    play(scene)


def test_the_log_is_copied_on_the_thread_as_often_as_its_pages_ask_for(clock: Clock) -> None:
    async def scene(writer: Writer, db: FakeConnection) -> None:
        for _ in range(15):
            await writer.call(lambda db: None, rows=100)
        copied = db.executed.count("PRAGMA wal_checkpoint(PASSIVE)")
        assert copied == 1
        # It had 100 pages where 1,000 were thought: next time after ten times as many rows.
        for _ in range(90):
            await writer.call(lambda db: None, rows=100)
        assert db.executed.count("PRAGMA wal_checkpoint(PASSIVE)") == copied

    play(scene)


def test_after_closing_every_request_is_refused() -> None:
    async def main() -> None:
        writer = Writer(FakeConnection(), HERE, timeout=0.2)  # type: ignore[arg-type]
        order: list[str] = []
        work = asyncio.ensure_future(writer.call(lambda db: order.append("queued"), rows=10_000))
        await asyncio.sleep(0)
        await writer.close(lambda db: order.append("last"))
        await work
        assert order == ["queued", "last"]
        with pytest.raises(StoreError, match="closed"):
            await writer.call(on_thread)

    asyncio.run(main())
