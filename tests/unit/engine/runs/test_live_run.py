"""LiveRun: one row under way, effects only after durability, dropped whole when refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from perdure.codec.journal import decode_row, encode_row
from perdure.engine.runs.launches import Launches
from perdure.engine.worker.claims import Claims
from perdure.flow.step import step
from perdure.kernel.actions import Claimed, Transition
from perdure.model.errors import InvalidRequest, StoreError
from perdure.stores.answers import CommitDone
from perdure.stores.rows import JournalRow
from tests.virtual.engines import engine_on, graph, killed, node, task
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore, down

LARGE = "x" * 5000


def nodes_of(row: JournalRow) -> list[str]:
    """What a row records: "CompleteTask a"."""
    return [
        f"{type(action).__name__} {getattr(action, 'node', '')}".strip()
        for transition in decode_row(row.body)
        for action in transition.actions
    ]


# ------------------------------------------------------------------------------------- recording


class Crowded(VirtualStore):
    """Too busy for the first rows of all, which it says at once."""

    times: list[float]

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        self.times.append(asyncio.get_running_loop().time())
        if len(self.times) <= 3:
            done(["busy"] * len(rows))
        else:
            super().commit(rows, done)


def test_a_store_that_is_busy_is_asked_again_after_a_pause_also_if_it_says_so_at_once() -> None:
    @step
    async def work() -> str:
        return "done"

    two = graph("two", [node("fork", "FORK"), task("a", "work"), task("b", "work")],
                ["fork a", "fork b"])  # fmt: skip

    async def main() -> None:
        store = Crowded()
        store.times = []
        async with engine_on(store, two, work) as engine:
            assert await engine.run(two, id="1") == {"a": "done", "b": "done"}
        assert store.times[:4] == pytest.approx([0, 0.05, 0.1, 0.15])
        done = await store.actions("two", "1")
        assert [sum(one == f"CompleteTask {n}" for one in done) for n in "ab"] == [1, 1]

    run(main())


@pytest.mark.rule("G-99", "G-46")
def test_what_is_decided_while_a_row_is_under_way_becomes_the_next_row() -> None:
    @step
    async def work(seconds: float) -> None:
        await asyncio.sleep(seconds)

    fan = graph(
        "fan",
        [node("fork", "FORK"), *(task(f"n{i}", "work", {"seconds": i / 10}) for i in range(1, 5))],
        [f"fork n{i}" for i in range(1, 5)],
    )

    async def main() -> None:
        store = LateStore(latency=0.25)
        async with engine_on(store, fan, work) as engine:
            assert await engine.run(fan, id="1") == {f"n{i}": None for i in range(1, 5)}
        rows = [row for batch in store.sent for row in batch]
        assert [row.seq for row in rows] == [2, 3, 4]
        # n1 ends at 0.1 s and is written until 0.35 s; n2 and n3 end meanwhile.
        assert [nodes_of(row) for row in rows] == [
            ["CompleteTask n1"],
            ["CompleteTask n2", "CompleteTask n3"],
            ["CompleteTask n4", "FinishRun"],
        ]

    run(main())


@pytest.mark.rule("G-99")
def test_no_step_starts_before_the_row_that_orders_it_is_durable() -> None:
    began: list[str] = []

    @step
    async def work(name: str) -> str:
        began.append(name)
        return name

    chain = graph("chain", [task(n, "work", {"name": n}) for n in "abc"])

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, chain, work, grace=0) as engine:
            store.holding = True
            starting = asyncio.ensure_future(engine.start(chain, id="1"))
            await asyncio.sleep(3600)
            assert began == []
            assert not starting.done()
            for so_far in (["a"], ["a", "b"], ["a", "b", "c"]):
                store.let_go()
                await asyncio.sleep(3600)
                assert began == so_far
            waiting = asyncio.ensure_future((await starting).result())
            await asyncio.sleep(3600)
            assert not waiting.done(), "an end that is not durable was told"
            store.let_go()
            assert await waiting == {"c": "c"}

    run(main())


def test_a_row_with_unknown_outcome_is_sent_again_as_it_was() -> None:
    # scenario 8
    @step
    async def work() -> int:
        return 1

    chain = graph("chain", [task("a", "work"), task("b", "work")])

    async def main(written: bool) -> None:
        store = LateStore()
        store.written_all_the_same = written
        async with engine_on(store, chain, work) as engine:
            started = await engine.start(chain, id="1")
            store.failures.extend(down(3))
            assert await started.result() == {"b": 1}
        first, *again = store.sent[:4]
        assert again == [first] * 3
        assert (await store.actions("chain", "1")).count("CompleteTask a") == 1

    run(main(False))
    run(main(True))


def test_a_row_that_can_never_be_written_stalls_its_run_and_no_other() -> None:
    @step
    async def work() -> None:
        await asyncio.sleep(1)

    one = graph("one", [task("a", "work"), task("b", "work")])

    class Picky(LateStore):
        def commit(self, rows: Any, done: Any) -> None:
            self.sent.append(list(rows))
            if any(row.run == self.poison and row.change is None for row in rows):
                done(InvalidRequest("cannot be written"))
            else:
                self._later(lambda d: VirtualStore.commit(self, rows, d), done)

        poison = b""

    async def main() -> None:
        store = Picky()
        async with engine_on(store, one, work) as engine:
            bad = await engine.start(one, id="bad")
            good = [await engine.start(one, id=f"good-{i}") for i in range(3)]
            store.poison = (await store.describe("one", "bad")).key
            for fine in good:
                await fine.result()
            told = (await bad.describe()).stalled
            assert told is not None
            assert "cannot be written" in told

    run(main())


# --------------------------------------------------------------------------------------- dropped


@pytest.mark.rule("G-99")
def test_a_refused_run_is_dropped_whole_its_steps_are_cancelled_and_nothing_is_written() -> None:
    # scenarios 84, 93
    seen: list[str] = []

    @step
    async def quick() -> None:
        await asyncio.sleep(1)

    @step(timeout=None)
    async def slow() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        seen.append("went on")

    fan = graph(
        "fan",
        [node("fork", "FORK"), task("quick"), task("slow"), task("after", "quick")],
        ["fork quick", "fork slow", "quick after"],
    )

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, fan, quick, slow) as engine:
            started = await engine.start(fan, id="1")
            await asyncio.sleep(0.5)
            key = (await store.describe("fan", "1")).key
            body, _ = encode_row([Transition(store.now(), [Claimed("somebody")])])
            VirtualStore.commit(
                store, [JournalRow(key, 2, store.now(), "somebody", 1, body)], lambda _: None
            )
            await asyncio.sleep(1)
            assert key not in engine._shell.live
            assert seen == ["cancelled"]
            assert [row.seq for batch in store.sent for row in batch] == [2]
            assert await started.status() == "running"
        assert "CompleteTask quick" not in await store.actions("fan", "1")

    run(main())


def test_a_run_is_let_go_only_after_the_row_under_way() -> None:
    """A stall while a row is being written: two rows at once could leave a gap between them."""

    @step
    async def work() -> None:
        await asyncio.sleep(1)

    fan = graph("fan", [node("fork", "FORK"), task("a", "work"), task("b", "work")],
                ["fork a", "fork b"])  # fmt: skip

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, fan, work) as engine:
            started = await engine.start(fan, id="1")
            store.holding = True
            await asyncio.sleep(2)
            (live,) = engine._shell.live.values()
            live.stall("for this test")
            await settle()
            assert [row.seq for batch in store.sent for row in batch] == [2]
            store.let_go()
            await settle()
            assert [row.seq for batch in store.sent for row in batch] == [2, 3]
            store.let_go()
            store.holding = False
            assert (await started.describe()).stalled == "for this test"
            assert engine._shell.live == {}
        # What was recorded counts: nothing of it happens twice.
        async with engine_on(store, fan, work) as engine:
            assert await engine.get(fan, "1").result() == {"a": None, "b": None}

    run(main())


def test_the_row_that_lets_a_run_go_is_no_earlier_than_the_one_before() -> None:
    # store rule 7: a transition's time never goes back, also when the clock is set back
    @step
    async def work() -> None:
        await asyncio.sleep(1)

    one = graph("one", [task("a", "work"), task("b", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, one, work) as engine:
            await engine.start(one, id="1")
            await asyncio.sleep(1.5)
            engine._clock.skew = -3_600_000_000  # type: ignore[attr-defined]
            (live,) = engine._shell.live.values()
            live.stall("for this test")
            times = [t.at for t in await store.journal("one", "1")]
            assert len(times) == 3
            assert times == sorted(times)

    run(main())


def test_a_fault_of_the_machinery_stalls_the_run_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from perdure.kernel.machine import GraphMachine

    @step
    async def work() -> None:
        await asyncio.sleep(1)

    one = graph("one", [task("a", "work")])
    real = GraphMachine.decide

    def faulty(self: Any, event: Any) -> Any:
        if type(event).__name__ == "NodeCompleted":
            raise ZeroDivisionError("a bug of ours")
        return real(self, event)

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, one, work) as engine:
            started = await engine.start(one, id="1")
            monkeypatch.setattr(GraphMachine, "decide", faulty)
            await asyncio.sleep(2)
            told = (await started.describe()).stalled
            assert told is not None
            assert "a bug of ours" in told
            assert await started.status() == "running"
        monkeypatch.setattr(GraphMachine, "decide", real)
        async with engine_on(store, one, work) as engine:
            assert await engine.get(one, "1").result() == {"a": None}

    run(main())


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
@pytest.mark.parametrize("nodes", ["a", "ab"], ids=["an end", "a step further"])
def test_a_decision_that_cannot_be_written_as_a_row_stalls_the_run_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, kind: type[VirtualStore], nodes: str
) -> None:
    @step
    async def work() -> None:
        await asyncio.sleep(1)

    chain = graph("chain", [task(name, "work") for name in nodes])

    def faulty(transitions: Any) -> Any:
        if transitions[-1].actions:
            raise OverflowError("a number that no row can hold")
        return encode_row(transitions)

    def faulty_onward(onward: Any) -> Any:
        raise OverflowError("a number that no row can hold")

    async def main() -> None:
        store = kind()
        async with engine_on(store, chain, work) as engine:
            started = await engine.start(chain, id="1")
            with monkeypatch.context() as patch:
                patch.setattr("perdure.engine.runs.rows.encode_row", faulty)
                patch.setattr("perdure.engine.runs.writing.encode_onward", faulty_onward)
                await asyncio.sleep(3)
            told = (await started.describe()).stalled
            assert told is not None
            assert "a number that no row can hold" in told
            assert [t.actions for t in await store.journal("chain", "1")][1:] == [[]]

    run(main())


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
@pytest.mark.parametrize("second", [False, True], ids=["at the start", "later"])
def test_effects_that_cannot_be_carried_out_stall_the_run_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, second: bool, kind: type[VirtualStore]
) -> None:
    @step
    async def work() -> None:
        await asyncio.sleep(1)

    chain = graph("chain", [task("a", "work"), task("b", "work")])
    real = Launches.now

    def faulty(self: Any, live: Any, node: str, *rest: Any) -> None:
        if (node == "b") is second:
            raise ZeroDivisionError("a bug of ours")
        real(self, live, node, *rest)

    async def main() -> None:
        store = kind()
        async with engine_on(store, chain, work) as engine:
            await engine.run(chain, id="0")  # from now on its start is a straight one
            with monkeypatch.context() as patch:
                patch.setattr(Launches, "now", faulty)
                started = await asyncio.wait_for(engine.start(chain, id="1"), 60)
                await asyncio.sleep(5)
            told = (await started.describe()).stalled
            assert told is not None
            assert "a bug of ours" in told
        async with engine_on(store, chain, work) as engine:
            assert await engine.get(chain, "1").result(timeout=60) == {"b": None}

    run(main())


# --------------------------------------------------------------------------------------- loading


@pytest.mark.parametrize("value", ["small", LARGE])
def test_outputs_of_an_earlier_process_are_loaded_when_asked_for(value: str) -> None:
    @step
    async def give() -> str:
        return value

    @step
    async def hold(text: str) -> str:
        await asyncio.sleep(10)
        return text

    @step
    async def join(first: str, second: str) -> list[str]:
        return [first, second]

    g = graph(
        "g",
        [
            task("give"),
            task("hold", input={"text": "{{tasks.give.output}}"}),
            task("join", input={"first": "{{tasks.give.output}}",
                                "second": "{{tasks.hold.output}}"}),
        ],
        output={"input": "{{input.text}}", "out": "{{tasks.join.output}}"},
    )  # fmt: skip

    async def main() -> None:
        store = LateStore()
        async with killed(store, g, give, hold, join) as engine:
            await engine.start(g, {"text": value}, id="1")
            await asyncio.sleep(5)
        reads = 0

        class Flaky(type(store)):  # type: ignore[misc]
            async def payloads(self, key: bytes, refs: Any) -> Any:
                nonlocal reads
                reads += 1
                if reads % 2:
                    raise StoreError("the disk is away")
                return await VirtualStore.payloads(self, key, refs)

        store.__class__ = Flaky
        async with engine_on(store, g, give, hold, join) as engine:
            output = await engine.get(g, "1").result()
            assert output == {"input": value, "out": [value, value]}
        assert (reads > 0) is (value == LARGE)

    run(main())


def test_further_events_of_a_run_wait_while_an_output_is_being_loaded() -> None:
    @step
    async def give() -> str:
        return LARGE

    @step
    async def work(text: str = "", seconds: float = 1.0) -> int:
        await asyncio.sleep(seconds)
        return len(text)

    g = graph(
        "g",
        [
            task("give"),
            node("fork", "FORK"),
            task("a", "work"),
            task("b", "work", {"seconds": 1.0005}),
            task("after", "work", {"text": "{{tasks.give.output}}"}),
        ],
        ["give fork", "fork a", "fork b", "a after", "b after"],
    )

    class Slow(LateStore):
        async def payloads(self, key: bytes, refs: Any) -> Any:
            await asyncio.sleep(30)
            return await super().payloads(key, refs)

    async def main() -> None:
        store = Slow()
        async with killed(store, g, give, work) as engine:
            await engine.start(g, id="1")
            await asyncio.sleep(0.5)
        async with engine_on(store, g, give, work) as engine:
            assert await engine.get(g, "1").result() == {"after": 5000}

    run(main())


# ----------------------------------------------------------------------------------------- claims


def test_the_watch_for_due_runs_outlives_whatever_goes_wrong_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # scenario 99
    @step
    async def work() -> None:
        pass

    one = graph("one", [task("a", "work")])
    real, calls = Claims.take_all, 0

    async def faulty(self: Claims) -> int:
        nonlocal calls
        calls += 1
        if calls in (2, 3):
            raise [KeyError("a bug of ours"), StoreError("the disk is away")][calls - 2]
        return await real(self)

    async def main() -> None:
        store = VirtualStore()
        monkeypatch.setattr(Claims, "take_all", faulty)
        async with engine_on(store, one, work) as engine:
            started = await engine.start(one, id="1", delay=60)
            assert await started.result() == {"a": None}
        assert calls > 3

    run(main())
