"""Signals: early, late, twice, to runs in memory and out of it; each counts once, none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from perdure.codec.journal import decode_row
from perdure.flow.step import step
from perdure.model.errors import InvalidRequest, NotFound, StoreError
from perdure.stores.answers import Mail, Posted
from perdure.stores.rows import Message
from tests.virtual.engines import client_on, engine_on, graph, killed, task, wait_for
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
ONE = graph("one", [wait_for("ok", "approved")])
TWO = graph("two", [wait_for("a", "item"), wait_for("b", "item")],
            output={"a": "{{tasks.a.output}}", "b": "{{tasks.b.output}}"})  # fmt: skip


def now() -> float:
    return asyncio.get_running_loop().time()


@step
async def slow() -> str:
    await asyncio.sleep(20)
    return "done"


LATE = graph("late", [task("slow"), wait_for("ok", "approved")])


@STORES
@pytest.mark.rule("G-82", "G-83")
@pytest.mark.parametrize("value", [{"by": "ann"}, "yes", 0, "", [], False, 1.5, "x" * 6000])
def test_a_signal_completes_the_wait_with_its_value(kind: type[VirtualStore], value: Any) -> None:
    # scenario 110: what is falsy is there all the same
    async def main() -> None:
        async with engine_on(kind(), ONE) as engine:
            started = await engine.start(ONE, id="1")
            await started.signal("approved", value)
            assert await started.result() == {"ok": value}

    run(main())


@pytest.mark.rule("G-83")
def test_a_signal_without_a_value_gives_an_empty_output() -> None:
    # scenario 45: null is a value, and no timeout
    async def main() -> None:
        async with engine_on(VirtualStore(), ONE) as engine:
            for id, args in (("1", ()), ("2", (None,))):
                started = await engine.start(ONE, id=id)
                await started.signal("approved", *args)
                assert await started.result() == {"ok": {}}

    run(main())


@STORES
@pytest.mark.rule("G-80", "G-81", "D-34")
@pytest.mark.parametrize("value", ["early", "x" * 6000])
def test_a_signal_sent_before_its_wait_is_kept_also_over_a_crash(
    kind: type[VirtualStore], value: str
) -> None:
    # scenario 47
    async def main() -> None:
        store = kind()
        async with killed(store, LATE, slow) as engine:
            started = await engine.start(LATE, id="1")
            await asyncio.sleep(5)
            await started.signal("approved", value)
            await asyncio.sleep(1)
        async with engine_on(store, LATE, slow) as engine:
            assert await engine.get(LATE, "1").result() == {"ok": value}

    run(main())


@STORES
@pytest.mark.rule("D-3")
def test_a_signal_sent_twice_with_one_dedupe_key_counts_once(kind: type[VirtualStore]) -> None:
    # scenario 267
    async def main() -> None:
        async with engine_on(kind(), TWO) as engine:
            started = await engine.start(TWO, id="1")
            for _ in range(3):
                await started.signal("item", 1, dedupe_key="first")
            await asyncio.sleep(60)
            assert await started.status() == "running"
            await started.signal("item", 2, dedupe_key="second")
            assert await started.result() == {"a": 1, "b": 2}
            await started.signal("item", 2, dedupe_key="second")  # told again after the end

    run(main())


@STORES
@pytest.mark.rule("D-3", "G-82")
def test_signals_of_many_senders_at_once_are_each_taken_once_in_the_order_of_their_numbers(
    kind: type[VirtualStore],
) -> None:
    # scenario 265
    g = graph("g", [wait_for(f"n{i}", "item") for i in range(10)],
              output=[f"{{{{tasks.n{i}.output}}}}" for i in range(10)])  # fmt: skip

    async def main() -> None:
        store = kind()
        async with engine_on(store, g) as engine:
            started = await engine.start(g, id="1")
            await asyncio.gather(*(started.signal("item", i) for i in range(10)))
            output = await started.result()
        assert sorted(output) == list(range(10))
        key = (await store.describe("g", "1")).key
        posted = [int(mail.body or b"-1") for mail in await store.mail(key, 0)]
        assert output == posted

    run(main())


@pytest.mark.rule("D-25")
def test_a_signal_to_a_run_that_ended_or_is_not_there_is_not_found() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), ONE) as engine:
            started = await engine.start(ONE, id="1")
            await started.signal("approved")
            await started.result()
            with pytest.raises(NotFound, match="ended"):
                await started.signal("approved")
            with pytest.raises(NotFound, match="there is no run"):
                await engine.get(ONE, "2").signal("approved")

    run(main())


@pytest.mark.rule("G-84", "D-37")
def test_a_signal_that_cannot_be_sent_is_refused_with_nothing_posted() -> None:
    class Named:
        name = "approved"

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE) as engine:
            started = await engine.start(ONE, id="1")
            for to in ("", "x" * 257, 7, object(), "\ud800"):
                with pytest.raises(InvalidRequest):
                    await started.signal(to)
            for value in (float("nan"), object(), 2**70):
                with pytest.raises(InvalidRequest):
                    await started.signal("approved", value)
            for key in ("", "x" * 257):
                with pytest.raises(InvalidRequest, match="dedupe_key"):
                    await started.signal("approved", dedupe_key=key)
            assert (await store.describe("one", "1")).mail == 0
            await started.signal(Named(), "by an object with a name")
            assert await started.result() == {"ok": "by an object with a name"}

    run(main())


# ---------------------------------------------------------------------------- how it reaches a run


@STORES
def test_a_signal_in_the_same_process_reaches_a_live_run_without_a_poll(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        async with engine_on(kind(), ONE, poll="1h") as engine:
            started = await engine.start(ONE, id="1")
            waiting = asyncio.ensure_future(started.result())
            await asyncio.sleep(1)
            await started.signal("approved", 1)
            assert await waiting == {"ok": 1}
            assert now() == pytest.approx(1, abs=0.02)

    run(main())


@STORES
def test_a_parked_run_resumes_at_once_when_it_is_signalled_in_the_same_process(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        async with engine_on(kind(), ONE, poll="1h") as engine:
            started = await engine.start(ONE, id="1")
            waiting = asyncio.ensure_future(started.result())
            await asyncio.sleep(120)
            assert engine._shell.live == {}
            await started.signal("approved", 1)
            assert await waiting == {"ok": 1}
            assert now() == pytest.approx(120, abs=0.02)

    run(main())


class Asked(VirtualStore):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def mailed(self, worker: str) -> Any:
        self.asked += 1
        return await super().mailed(worker)

    async def claim_runs(self, *args: Any) -> Any:
        self.asked += 1
        return await super().claim_runs(*args)

    async def mail(self, key: bytes, after: int) -> Sequence[Mail]:
        self.asked += 1
        return await super().mail(key, after)


@pytest.mark.parametrize("by", ["the engine", "a client of its store"])
def test_a_signal_posted_in_the_same_process_goes_straight_to_the_run(by: str) -> None:
    """Nothing is asked of the store: what is posted is there."""

    async def main() -> None:
        store = Asked()
        async with engine_on(store, TWO, poll="1h") as engine, client_on(store) as client:
            started = await engine.start(TWO, id="1")
            await settle()
            store.asked = 0
            handle = started if by == "the engine" else client.get("two", "1")
            began = now()
            for value in (1, 2):
                await handle.signal("item", value)
                await settle()
            assert store.asked == 0
            assert await started.result() == {"a": 1, "b": 2}
            assert now() == began

    run(main())


class Deaf(VirtualStore):
    """A store that gives no hints."""

    def subscribe(self, call: Any, posted: Any = None) -> Any:
        return lambda: None


@pytest.mark.parametrize("parked", [False, True])
@pytest.mark.parametrize("kind", [VirtualStore, Deaf])
def test_a_signal_of_another_process_is_taken_within_a_poll_interval(
    kind: type[VirtualStore], parked: bool
) -> None:
    # scenario 49: a hint is a hint; a lost one costs a poll interval
    async def main() -> None:
        store = kind()
        async with engine_on(store, ONE, poll=2) as engine, client_on(store) as client:
            started = await engine.start(ONE, id="1")
            waiting = asyncio.ensure_future(started.result())
            await asyncio.sleep(60 if parked else 5)
            assert bool(engine._shell.live) != parked
            began = now()
            await client.get("one", "1").signal("approved", 1)
            assert await waiting == {"ok": 1}
            assert now() - began <= (2.1 if kind is Deaf else 0.02)

    run(main())


def test_a_signal_sent_while_nobody_works_is_there_when_somebody_does() -> None:
    # scenario 5
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE) as engine:
            await engine.start(ONE, id="1")
        async with client_on(store) as client:
            await client.get("one", "1").signal("approved", 1)
        async with engine_on(store, ONE) as engine:
            assert await engine.get(ONE, "1").result() == {"ok": 1}

    run(main())


def test_a_signal_is_taken_by_whoever_took_the_run_over() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE) as survivor:
            async with killed(store, ONE) as engine:
                started = await engine.start(ONE, id="1")
                await asyncio.sleep(1)
                # Posted by another process just before the owner dies: unread by it.
                await store.post([Message("one", "1", "m1", "signal", "approved", b"1")])
            assert await survivor.get(ONE, "1").result() == {"ok": 1}
            assert await started.status() == "completed"

    run(main())


def test_messages_that_come_out_of_order_are_applied_in_order() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), TWO) as engine:
            started = await engine.start(TWO, id="1")
            (live,) = engine._shell.live.values()
            store = engine._store
            for n in (1, 2):
                await store.post([Message("two", "1", f"m{n}", "signal", "item", b"%d" % n)])
            live.post([Mail(2, "m2", "signal", "item", b"2")])
            assert await started.result() == {"a": 1, "b": 2}

    run(main())


def test_mail_that_cannot_be_read_for_now_is_read_later() -> None:
    class Flaky(Deaf):
        fails = 3

        async def mail(self, key: bytes, after: int) -> Sequence[Mail]:
            self.fails -= 1
            if self.fails >= 0:
                raise StoreError("the disk is away")
            return await super().mail(key, after)

    async def main() -> None:
        store = Flaky()
        async with engine_on(store, ONE, poll=1) as engine:
            started = await engine.start(ONE, id="1")
            await store.post([Message("one", "1", "m1", "signal", "approved", b"1")])
            assert await started.result() == {"ok": 1}
            assert 2 <= now() <= 5

    run(main())


def test_telling_a_run_is_tried_again_and_counts_once() -> None:
    class Unsure(VirtualStore):
        fails = 2

        async def post(self, messages: Sequence[Message]) -> Sequence[Posted]:
            answer = await super().post(messages)
            self.fails -= 1
            if self.fails >= 0:
                raise StoreError("no answer came")
            return answer

    async def main() -> None:
        async with engine_on(Unsure(), TWO) as engine:
            started = await engine.start(TWO, id="1")
            await started.signal("item", 1)
            await asyncio.sleep(60)
            assert await started.status() == "running"
            await started.signal("item", 2)
            assert await started.result() == {"a": 1, "b": 2}

    run(main())


# ------------------------------------------------------------------------------- what is recorded


async def rows(store: VirtualStore, name: str) -> list[tuple[int, list[str]]]:
    """Of each row: `read`, and the names of its actions."""
    loaded = await store.load((await store.describe(name, "1")).key)
    return [
        (row.read, [type(a).__name__ for t in decode_row(row.body) for a in t.actions])
        for row in loaded.journal
    ]


@pytest.mark.rule("D-38")
def test_every_message_is_recorded_also_when_it_is_ignored_or_refused() -> None:
    # rule 4 of the stores: recording a message is what consumes it
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE) as engine:
            started = await engine.start(ONE, id="1")
            await started.unpause()
            await store.post([Message("one", "1", "m2", "nonsense")])
            await store.post([Message("one", "1", "m3", "signal", "approved", b"{broken")])
            await store.post([Message("one", "1", "m4", "cancel", "", b"7")])
            await asyncio.sleep(2)
            assert await started.status() == "running"
            await started.signal("approved", 1)
            assert await started.result() == {"ok": 1}
        found = await rows(store, "one")
        assert [name for _, names in found for name in names] == [
            "OpenRun", "CreateTask", "Ignored", "Refused", "Refused", "Refused", "ResolveWait",
            "FinishRun",
        ]  # fmt: skip
        assert [read for read, _ in found][-1] == 5
        assert [read for read, _ in found] == sorted(read for read, _ in found)

    run(main())


@pytest.mark.rule("D-38")
def test_an_ignored_report_of_a_local_attempt_writes_nothing() -> None:
    @step
    async def stubborn() -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep(10)
        return "all the same"

    g = graph("g", [task("stubborn")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, stubborn) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(1)
            await started.cancel()
            before = await rows(store, "g")
            await asyncio.sleep(60)
            assert await rows(store, "g") == before

    run(main())


def test_what_a_run_has_read_is_never_applied_again_after_a_crash() -> None:
    # scenario 266
    async def main() -> None:
        for row in range(1, 5):
            store = LateStore()
            async with killed(store, TWO) as engine:
                started = await engine.start(TWO, id="1")
                await started.signal("item", 1)
                store.holding = row > 2
                if row % 2:
                    await asyncio.sleep(1)
                store.holding = False
                store.held.clear()
            async with engine_on(store, TWO) as engine:
                again = engine.get(TWO, "1")
                await asyncio.sleep(5)
                assert await again.status() == "running", "one signal served two waits"
                await again.signal("item", 2)
                assert await again.result() == {"a": 1, "b": 2}

    run(main())


def test_a_run_that_ends_with_mail_unread_leaves_it_unread() -> None:
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, ONE) as engine:
            started = await engine.start(ONE, id="1")
            store.holding = True
            await started.signal("approved", 1)
            await started.signal("approved", 2)  # the run has ended, and nobody can know yet
            await settle()
            store.holding = False
            store.let_go()
            assert await started.result() == {"ok": 1}
            row = await store.describe("one", "1")
            loaded = await store.load(row.key)
            assert [mail.n for mail in loaded.mail] == [2]

    run(main())
