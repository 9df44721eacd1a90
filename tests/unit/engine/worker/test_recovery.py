"""Recovery: whatever dies where, the next worker goes on from what is recorded."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from perdure.flow.step import step
from perdure.model.errors import DefinitionError, Failure, StoreError, TimedOut
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from tests.virtual.engines import client_on, engine_on, graph, killed, node, task
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore


@pytest.mark.rule("G-100")
@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_pending_attempt_runs_again_with_its_number_and_idempotency_key(
    kind: type[VirtualStore],
) -> None:
    # scenario 59
    seen: list[tuple[int, str]] = []

    @step(retry=Retry(3, initial=1))
    async def work() -> str:
        context = current_step()
        seen.append((context.attempt, context.idempotency_key))
        await asyncio.sleep(30)
        if context.attempt == 1:
            raise Failure("the first time it fails")
        return "done"

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        store = kind()
        for seconds in (10, 10, 45, 5):
            async with killed(store, one, work) as engine:
                if not seen:
                    await engine.start(one, id="1")
                await asyncio.sleep(seconds)
        async with engine_on(store, one, work) as engine:
            assert await engine.get(one, "1").result() == {"a": "done"}

    run(main())
    assert [attempt for attempt, _ in seen] == [1, 1, 1, 2, 2, 2]
    assert len({key for _, key in seen}) == 1


def test_an_engine_that_is_open_already_takes_over_from_one_that_dies() -> None:
    # scenarios 61, 86: recovery is a sweep, not something that happens at a start
    @step
    async def work() -> str:
        await asyncio.sleep(30)
        return "done"

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, one, work) as survivor:
            async with killed(store, one, work) as engine:
                await engine.start(one, id="1")
                await asyncio.sleep(5)
            waiting = asyncio.ensure_future(survivor.get(one, "1").result())
            assert await asyncio.wait_for(waiting, 60) == {"a": "done"}

    run(main())


def test_a_worker_taken_for_dead_takes_its_own_run_over_and_holds_it_once() -> None:
    # scenario 84: what it held before must not go on beside it, nor take it out of memory
    running = most = 0

    @step
    async def work() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(30)
        finally:
            running -= 1
        return "done"

    one = graph("one", [task("a", "work"), task("b", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, one, work) as engine:
            started = await engine.start(one, id="1")
            (before,) = engine._shell.live.values()
            await asyncio.sleep(5)
            store.crash(engine._shell.worker)
            await store.sweep("another")
            await asyncio.sleep(40)
            (after,) = engine._shell.live.values()
            assert before.dead
            assert not after.dead
            assert await started.result(timeout=60) == {"b": "done"}
            assert engine._shell.live == {}

    run(main())
    assert (running, most) == (0, 1)


@pytest.mark.rule("G-100")
def test_completed_steps_are_not_made_again() -> None:
    # scenario 268
    made: list[str] = []

    @step
    async def work(name: str) -> str:
        made.append(name)
        await asyncio.sleep(10)
        return name

    chain = graph("chain", [task(n, "work", {"name": n}) for n in "abcd"])

    async def main() -> None:
        store = LateStore()
        async with killed(store, chain, work) as engine:
            await engine.start(chain, id="1")
            await asyncio.sleep(25)
        async with killed(store, chain, work) as engine:
            assert await engine.resume() == 1
            await asyncio.sleep(12)
        async with engine_on(store, chain, work) as engine:
            assert await engine.get(chain, "1").result() == {"d": "d"}

    run(main())
    assert made == ["a", "b", "c", "c", "d", "d"]


def test_a_retry_waits_for_its_recorded_time_also_after_a_crash() -> None:
    # scenarios 60, 73
    at: list[float] = []

    @step(retry=Retry(2, initial="4h", max_delay="1d"))
    async def work() -> str:
        at.append(asyncio.get_running_loop().time())
        if current_step().attempt == 1:
            raise Failure("not yet")
        return "done"

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, one, work) as engine:
            await engine.start(one, id="1")
            await asyncio.sleep(3600)
        async with killed(store, one, work):
            await asyncio.sleep(3600)
        await asyncio.sleep(3600)
        async with engine_on(store, one, work) as engine:
            assert await engine.get(one, "1").result() == {"a": "done"}

    run(main())
    assert at == [0.0, 14_400.0]


def test_a_retry_that_came_due_while_nobody_worked_runs_at_once() -> None:
    at: list[float] = []

    @step(retry=Retry(2, initial="1h", max_delay="1h"))
    async def work() -> None:
        at.append(asyncio.get_running_loop().time())
        if len(at) == 1:
            raise Failure("not yet")

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, one, work) as engine:
            await engine.start(one, id="1")
            await asyncio.sleep(60)
        await asyncio.sleep(86_400)
        async with engine_on(store, one, work) as engine:
            await engine.get(one, "1").result()

    run(main())
    assert at == [0.0, 86_460.0]


def test_two_engines_on_one_store_never_hold_the_same_run() -> None:
    # scenario 83: a start-up sweep does not take what lives in another worker.
    made: list[str] = []

    @step
    async def work() -> None:
        made.append(current_step().run_id)
        await asyncio.sleep(10)

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, one, work) as first:
            for i in range(10):
                await first.start(one, id=f"r{i}")
            async with engine_on(store, one, work) as second:
                assert await second.resume() == 0
                await asyncio.gather(*(second.get(one, f"r{i}").result() for i in range(10)))
        assert sorted(made) == sorted(f"r{i}" for i in range(10))

    run(main())


def test_only_runs_that_have_not_ended_are_resumed() -> None:
    # scenario 103
    @step
    async def work() -> None:
        pass

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, one, work) as engine:
            await engine.run(one, id="1")
        async with engine_on(store, one, work) as engine:
            assert await engine.resume() == 0

    run(main())


# ------------------------------------------------------------------------------------- versions


@pytest.mark.rule("G-101", "D-36")
def test_a_run_keeps_the_version_it_was_started_with() -> None:
    @step
    async def work(text: str) -> str:
        await asyncio.sleep(10)
        return text

    def version(text: str) -> Any:
        return graph("g", [task("a", "work", {"text": text}), task("b", "work", {"text": text})])

    async def main() -> None:
        store = VirtualStore()
        old, new = version("old"), version("new")
        async with killed(store, old, work) as engine:
            await engine.start(old, id="1")
            await asyncio.sleep(1)
        async with engine_on(store, new, work) as engine:
            await engine.start(new, id="2")
            assert await engine.get("g", "1").result() == {"b": "old"}
            assert await engine.get("g", "2").result() == {"b": "new"}

    run(main())


@pytest.mark.rule("D-36")
def test_a_run_whose_step_disappeared_stalls_with_the_reason_and_goes_on_when_it_is_back() -> None:
    @step
    async def first() -> int:
        return 1

    @step
    async def second() -> int:
        return 2

    old = graph("g", [task("first"), task("second")])
    new = graph("g", [task("first")])

    async def main() -> None:
        store = LateStore()
        async with killed(store, old, first, second) as engine:
            await engine.start(old, id="1")
            store.holding = True  # `first` ran; nothing of it was recorded
            await asyncio.sleep(1)
        store.holding = False
        store.held.clear()
        async with engine_on(store, new, first) as engine:
            await asyncio.sleep(1)
            info = await engine.get("g", "1").describe()
            assert info.status == "running"
            assert info.stalled is not None
            assert "'second'" in info.stalled
            assert "not registered" in info.stalled
            assert await engine.run(new, id="2") == {"first": 1}
        assert "FailTask second" not in await store.actions("g", "1")
        async with engine_on(store, old, first, second) as engine:
            assert await engine.get("g", "1").result() == {"second": 2}
        assert (await store.actions("g", "1")).count("CompleteTask first") == 1

    run(main())


def test_a_stalled_run_of_a_graph_ends_at_its_deadline_whether_somebody_is_there_or_not() -> None:
    @step
    async def second() -> int:
        return 2

    @step
    async def other() -> int:
        return 1

    old = graph("g", [task("second")], max_duration="1h")
    new = graph("g", [task("other")], max_duration="1h")

    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            for id in ("1", "2"):
                await client.start(old, id=id, **({"delay": 7100} if id == "2" else {}))
        async with engine_on(store, new, other) as engine:
            await asyncio.sleep(3000)
            assert (await engine.get("g", "1").describe()).stalled
            with pytest.raises(TimedOut):
                await engine.get("g", "1").result(timeout=700)
            await asyncio.sleep(3600)
            assert (await engine.get("g", "2").describe()).stalled
        await asyncio.sleep(7200)
        async with engine_on(store, new, other) as engine:
            with pytest.raises(TimedOut):
                await engine.get("g", "2").result(timeout=60)

    run(main())


def test_a_run_that_is_taken_after_its_deadline_begins_nothing_more() -> None:
    ran: list[int] = []

    @step
    async def work() -> None:
        ran.append(1)

    g = graph("g", [task("work")], max_duration="1h")

    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            await client.start(g, id="1")
        await asyncio.sleep(7200)
        async with engine_on(store, g, work) as engine:
            with pytest.raises(TimedOut):
                await engine.get("g", "1").result(timeout=60)
        assert ran == []

    run(main())


def test_an_engine_refuses_a_definition_whose_steps_it_was_not_given() -> None:
    @step
    async def first() -> int:
        return 1

    g = graph("g", [task("first"), task("second")])

    async def main() -> None:
        with pytest.raises(DefinitionError, match="second"):
            engine_on(VirtualStore(), g, first)
        async with engine_on(VirtualStore(), first) as engine:
            with pytest.raises(DefinitionError, match="second"):
                await engine.start(g)

    run(main())


@pytest.mark.rule("G-101")
def test_a_run_of_a_definition_that_the_store_lost_stalls_and_others_go_on() -> None:
    @step
    async def work() -> None:
        await asyncio.sleep(10)

    one = graph("g", [task("a", "work")])
    other = graph("g", [task("b", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, one, work) as engine:
            await engine.start(one, id="1")
            await engine.start(other, id="2")
        del store._definitions[other.hash]
        async with engine_on(store, one, work) as engine:
            assert await engine.get(one, "1").result() == {"a": None}
            stalled = (await engine.get("g", "2").describe()).stalled
            assert stalled is not None
            assert "not in this store" in stalled

    run(main())


# ------------------------------------------------------------------------- trouble while loading


def test_a_run_that_cannot_be_loaded_for_now_is_given_back_and_tried_again() -> None:
    # scenario 86
    @step
    async def work() -> str:
        return "done"

    g = graph("g", [task("a", "work")])

    class Flaky(VirtualStore):
        loads = 0
        gives = 0

        async def load(self, key: bytes) -> Any:
            self.loads += 1
            if self.loads <= 3:
                raise StoreError("the disk is away")
            return await super().load(key)

        async def give_back(self, *args: Any) -> None:
            self.gives += 1
            if self.gives <= 2:
                raise StoreError("the disk is still away")
            await super().give_back(*args)

    async def main() -> None:
        store = Flaky()
        async with client_on(store) as client:
            for i in range(5):
                await client.start(g, id=f"r{i}")
        async with engine_on(store, g, work) as engine:
            for i in range(5):
                assert await engine.get(g, f"r{i}").result(timeout=3600) == {"a": "done"}

    run(main())


@pytest.mark.parametrize("row", [b"not a row", b'{"v":99,"t":[]}', b'{"v":1,"t":[]}'])
def test_a_run_whose_journal_cannot_be_read_stalls_alone(row: bytes) -> None:
    @step
    async def work() -> str:
        return "done"

    g = graph("g", [task("a", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            for i in range(3):
                await client.start(g, id=f"r{i}")
        poisoned = store._runs[(await store.describe("g", "r1")).key]
        sound = poisoned.journal[1]
        poisoned.journal[1] = msgspec.structs.replace(sound, body=row)
        async with engine_on(store, g, work) as engine:
            for name in ("r0", "r2"):
                assert await engine.get(g, name).result() == {"a": "done"}
            info = await engine.get(g, "r1").describe()
            assert info.status == "running"
            assert info.stalled is not None
        poisoned.journal[1] = sound
        async with engine_on(store, g, work) as engine:
            assert await engine.get(g, "r1").result() == {"a": "done"}

    run(main())


def test_a_run_whose_large_input_is_lost_keeps_no_other_run_waiting() -> None:
    @step
    async def work(text: str) -> int:
        await asyncio.sleep(10)
        return len(text)

    g = graph("g", [task("a", "work", {"text": "{{input.text}}"})])

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, g, work) as engine:
            for i in range(3):
                await engine.start(g, {"text": "x" * 5000}, id=f"r{i}")
        journal = store._runs[(await store.describe("g", "r0")).key].journal
        kept = dict(journal)
        journal.update({n: msgspec.structs.replace(row, payloads=()) for n, row in kept.items()})
        async with engine_on(store, g, work) as engine:
            for name in ("r1", "r2"):
                assert await engine.get(g, name).result(timeout=60) == {"a": 5000}
            info = await engine.get(g, "r0").describe()
            assert info.status == "running"
            assert info.stalled is not None
            assert "lacks the payload" in info.stalled
            journal.update(kept)
            await engine.get(g, "r0").unpause()
            assert await engine.get(g, "r0").result(timeout=60) == {"a": 5000}

    run(main())


def test_a_journal_with_a_gap_is_not_gone_on_with() -> None:
    @step
    async def work() -> None:
        await asyncio.sleep(10)

    g = graph("g", [task(n, "work") for n in "abc"])

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, g, work) as engine:
            await engine.start(g, id="1")
            await asyncio.sleep(25)
        del store._runs[(await store.describe("g", "1")).key].journal[2]
        async with engine_on(store, g, work) as engine:
            await settle()
            stalled = (await engine.get("g", "1").describe()).stalled
            assert stalled == "row 2 of its journal is missing"

    run(main())


def test_a_fork_goes_on_in_every_branch_where_it_was() -> None:
    made: list[str] = []

    @step
    async def work(name: str, seconds: float) -> str:
        made.append(name)
        await asyncio.sleep(seconds)
        return name

    names = {"a": 1, "b": 20, "c": 30}
    fan = graph(
        "fan",
        [
            node("fork", "FORK"),
            *(task(n, "work", {"name": n, "seconds": s}) for n, s in names.items()),
            node("join", "JOIN"),
            task("end", "work", {"name": "end", "seconds": 0}),
        ],
        [*(f"fork {n}" for n in names), *(f"{n} join" for n in names), "join end"],
        output={n: f"{{{{tasks.{n}.output}}}}" for n in [*names, "end"]},
    )

    async def main() -> None:
        store = LateStore()
        async with killed(store, fan, work) as engine:
            await engine.start(fan, id="1")
            await asyncio.sleep(10)
        async with killed(store, fan, work):
            await asyncio.sleep(25)
        async with engine_on(store, fan, work) as engine:
            output = await engine.get(fan, "1").result()
            assert output == {n: n for n in [*names, "end"]}

    run(main())
    assert {name: made.count(name) for name in made} == {"a": 1, "b": 2, "c": 3, "end": 1}
