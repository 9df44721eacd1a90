"""AtOnce: a step that begins in the decision it follows from is like any other, to itself and to
its workflow; and whatever happens meanwhile ends that, and loses nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest

from perdure import Retry, current_step, step, workflow
from perdure.flow.context import Context
from perdure.flow.signal import Channel
from perdure.model.errors import Canceled
from perdure.stores.answers import CommitDone
from perdure.stores.rows import JournalRow
from tests.unit.engine.runs.chain import at_once, begun, blocks, chain, deeds, watch, work
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import VirtualLoop, run, settle
from tests.virtual.stores import PromptStore, VirtualStore

VAR: ContextVar[str] = ContextVar("var", default="nobody's")
NEWS = Channel("news", int)


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    watch(monkeypatch)
    yield
    deeds.clear()  # they refer to engines and runs


# ---------------------------------------------------------------------------- what a step sees


def test_what_surrounds_a_step_is_the_same_wherever_it_is_made() -> None:
    seen: list[Any] = []
    closed: list[Any] = []

    async def counts() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append(asyncio.get_running_loop())

    @step
    async def looks(number: int) -> int:
        me, loop, task = current_step(), asyncio.get_running_loop(), asyncio.current_task()
        async for _ in counts():
            break  # what it leaves is closed by the loop that runs, in a moment
        seen.append((me.node, me.attempt, me.run_id, loop, task, VAR.get(), sys.exception()))
        seen.append((sys.get_asyncgen_hooks(), me.deadline, me.canceled))
        VAR.set("the step's")
        return number

    @workflow(max_duration=None)
    async def looking(ctx: Context) -> list[str]:
        VAR.set("the workflow's")
        own = asyncio.get_running_loop(), asyncio.current_task(), sys.get_asyncgen_hooks()
        vars = []
        for number in range(4):
            await looks(number)
            assert own == (
                asyncio.get_running_loop(), asyncio.current_task(), sys.get_asyncgen_hooks()
            )  # fmt: skip
            vars.append(VAR.get())
        return vars

    async def main() -> None:
        VAR.set("the engine's")
        async with engine_on(VirtualStore(), looking, looks) as engine:
            VAR.set("the caller's")
            assert await engine.run(looking, id="1") == ["the workflow's"] * 4
            await settle()
        loop = asyncio.get_running_loop()
        assert closed == [loop] * 4
        (_, _, _, _, task, _, _), around = seen[0], seen[1]
        assert around[0].finalizer == sys.get_asyncgen_hooks().finalizer
        for number in range(4):
            node = "looks" if number == 0 else f"looks#{number + 1}"
            assert seen[2 * number] == (node, 1, "1", loop, task, "the engine's", None)
            assert seen[2 * number + 1] == around
        assert task is not None
        assert task.get_loop() is loop
        assert at_once == {"completed": 3}

    run(main())


def test_whatever_the_engine_does_for_a_step_it_does_in_its_own_context() -> None:
    """What a store, a codec, a failure or a `retry_on` asks a context variable is no workflow's."""
    seen: dict[str, set[str]] = {}

    def look(who: str) -> None:
        seen.setdefault(who, set()).add(VAR.get())

    class Looking(PromptStore):
        def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
            look("store")
            asyncio.get_running_loop().call_soon(look, "later")
            super().commit(rows, done)

    class Odd(Exception):
        def __str__(self) -> str:
            look("failure")
            return "odd"

    def judges(error: Exception) -> bool:
        look("retry_on")
        return False

    @step(retry=Retry(2, retry_on=judges))
    async def fails(number: int) -> int:
        if number == 3:
            raise Odd
        return number

    @workflow(max_duration=None)
    async def failing(ctx: Context) -> None:
        VAR.set("the workflow's")
        for number in range(4):
            await fails(number)

    async def main() -> None:
        VAR.set("the engine's")
        async with engine_on(Looking(), failing, fails) as engine:
            with pytest.raises(Exception, match="odd"):
                await engine.run(failing, id="1")
            await settle()
        assert at_once == {"completed": 2, True: 1}
        assert seen == {who: {"the engine's"} for who in ("store", "later", "failure", "retry_on")}

    run(main())


def test_a_step_that_is_called_while_a_failure_is_handled_sees_none() -> None:
    seen: list[Any] = []

    @step
    async def fails() -> None:
        raise ValueError("no")

    @step
    async def looks() -> None:
        seen.append((sys.exception(), asyncio.get_running_loop()))
        try:
            raise KeyError
        except KeyError as error:
            seen.append((error.__context__, asyncio.get_running_loop()))

    @workflow(max_duration=None)
    async def handling(ctx: Context) -> str:
        await looks()
        try:
            await fails()
        except Exception:
            await looks()
            await looks()
        await looks()
        return "handled"

    async def main() -> None:
        async with engine_on(VirtualStore(), handling, fails, looks) as engine:
            assert await engine.run(handling, id="1") == "handled"
        assert seen == [(None, asyncio.get_running_loop())] * 8
        assert at_once == {True: 1, "completed": 2}

    run(main())


# --------------------------------------------------------------------------- what ends a process


@pytest.mark.rule("D-29")
@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
def test_what_ends_the_process_goes_through_no_workflow(ending: type[BaseException]) -> None:
    caught: list[str] = []

    def ends() -> None:
        raise ending

    deeds[2] = ends

    @workflow(max_duration=None)
    async def careful(ctx: Context) -> int:
        try:
            return sum([await work(number) for number in range(4)])
        except GeneratorExit:
            caught.append("let go")
            raise
        except BaseException as error:
            caught.append(type(error).__name__)
            raise

    store = VirtualStore()
    loop = VirtualLoop()

    async def begin() -> Any:
        engine = engine_on(store, careful, work, grace=0)
        await engine.__aenter__()
        await engine.start(careful, id="1")
        await asyncio.sleep(5)

    with pytest.raises(ending):
        loop.run_until_complete(begin())
    assert caught == []
    assert begun == [0, 1, 2]
    assert at_once == {"completed": 1, True: 1}
    deeds.clear()

    async def go_on() -> None:
        for worker in list(store._leases):
            store.crash(worker)
        async with engine_on(store, careful, work) as engine:
            assert await engine.get(careful, "1").result() == 6

    try:
        loop.run_until_complete(go_on())
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
    assert begun == [0, 1, 2, 2, 3]
    assert "Exception" not in caught


# ---------------------------------------------------------------------------- what comes meanwhile


@pytest.mark.parametrize("also", ["ends", "waits", "fails"])
def test_a_message_that_comes_while_a_step_is_made_is_decided_before_its_end(also: str) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, chain, work) as engine:

            async def signals() -> None:
                await engine.get(chain, "1").signal(NEWS, 1)
                if current_step().attempt == 1:
                    if also == "waits":
                        await asyncio.sleep(1)
                    elif also == "fails":
                        raise ValueError("no")

            deeds[2] = signals
            assert await engine.run(chain, 4, id="1") == 6
        made = await store.actions("chain", "1")
        after = "RetryTask work#3" if also == "fails" else "CompleteTask work#3"
        first = made.index("BufferSignal")
        assert made.index("DispatchTask work#3") < first < made.index(after)
        assert at_once == {"completed": 1, True: 1}

    run(main())


@pytest.mark.parametrize("waits", [False, True])
def test_a_cancel_that_comes_while_a_step_is_made_ends_the_run_at_that_step(
    waits: bool,
) -> None:
    async def main() -> None:
        store = VirtualStore()
        stopped: list[str] = []
        async with engine_on(store, chain, work) as engine:

            async def cancels() -> None:
                await engine.get(chain, "1").cancel("enough")
                if waits:
                    try:
                        await asyncio.sleep(10)
                    except asyncio.CancelledError:
                        stopped.append(str(asyncio.get_running_loop().time()))
                        raise

            deeds[2] = cancels
            with pytest.raises(Canceled):
                await engine.run(chain, 9, id="1")
            await settle()
        assert begun == [0, 1, 2]
        assert stopped == ["0.0"] * waits
        assert at_once == {"completed": 1, True: 1}
        assert "CreateTask work#4" not in await store.actions("chain", "1")

    run(main())


def test_a_run_that_is_paused_by_its_step_begins_no_other_before_it_goes_on() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), chain, work) as engine:
            run = engine.get(chain, "1")
            deeds[2] = run.pause
            started = await engine.start(chain, 6, id="1")
            await asyncio.sleep(60)
            assert begun == [0, 1, 2]
            await run.unpause()
            assert await started.result() == 15
        assert begun == list(range(6))
        assert at_once[True] == 1

    run(main())


def test_an_engine_that_is_about_to_close_begins_no_other_step() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, chain, work, grace=0) as engine:

            def closes() -> None:
                engine._shell.stopping = True

            deeds[2] = closes
            await engine.start(chain, 6, id="1")
            await settle()
            assert begun == [0, 1, 2]
        assert (await store.actions("chain", "1"))[-1] == "DispatchTask work#4"
        async with engine_on(store, chain, work) as engine:
            assert await engine.get(chain, "1").result() == 15
        assert begun == list(range(6))

    run(main())


def test_no_step_begins_once_the_lease_may_be_over() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), chain, work) as engine:
            shell, loop = engine._shell, asyncio.get_running_loop()
            deeds[2] = blocks(0.002)
            shell.lease_over = loop.time() + 0.001
            started = await engine.start(chain, 6, id="1")
            await settle()
            assert begun == [0, 1, 2]
            assert shell.held_back
            shell.leased(loop.time() + 60)
            assert await started.result() == 15
        assert begun == list(range(6))

    run(main())


# ---------------------------------------------------------------------------------- let go of


def _only(engine: Any) -> Any:
    """The run that is in memory."""
    [live] = engine._shell.live.values()
    return live


@pytest.mark.parametrize("how", ["drop", "die", "stall"])
@pytest.mark.parametrize("then", ["ends", "waits", "raises"])
def test_a_run_that_is_let_go_of_by_its_own_step_is_closed_there(how: str, then: str) -> None:
    saw: list[str] = []

    @workflow(max_duration=None)
    async def ending(ctx: Context) -> None:
        try:
            for number in range(6):
                await work(number)
                saw.append(f"after {number}")
        except BaseException as error:
            saw.append(type(error).__name__)
            raise
        finally:
            await work(99)  # which nobody makes

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ending, work, grace=0) as engine:
            shell = engine._shell
            lives: list[Any] = []

            async def goes() -> None:
                lives.append(_only(engine))
                if how == "drop":
                    shell.drop(lives[0])
                elif how == "die":
                    lives[0].die()
                else:
                    lives[0].stall("enough")
                saw.append("let go")
                if then == "waits":
                    await asyncio.sleep(1)
                elif then == "raises":
                    raise ValueError("no")

            deeds[2] = goes
            await engine.start(ending, id="1")
            await settle()
            assert saw == ["after 0", "after 1", "GeneratorExit", "let go"]
            calls = lives[0].machine.calls
            assert not calls.loop.alive
            assert lives[0].machine.root.get_coro().cr_frame is None
            await asyncio.sleep(0.2)
            assert begun == [0, 1, 2]
            assert at_once == {"completed": 1, True: 1}
            assert (await store.actions("ending", "1"))[-1] == "DispatchTask work#3"

    run(main())


def test_code_that_will_not_end_when_its_step_lets_it_go_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @workflow(max_duration=None)
    async def stubborn(ctx: Context) -> None:
        number = 0
        while True:
            with suppress(GeneratorExit):
                await work(number)
            number += 1

    async def main() -> None:
        async with engine_on(VirtualStore(), stubborn, work, grace=0) as engine:

            def drops() -> None:
                engine._shell.drop(_only(engine))

            deeds[2] = drops
            await engine.start(stubborn, id="1")
            await settle()
            assert at_once == {"completed": 1, True: 1}

    run(main())
    assert "its code would not end when it was let go of" in caplog.text


def test_a_process_that_is_killed_in_a_step_repeats_that_one_alone() -> None:
    async def main() -> None:
        store = VirtualStore()
        deeds[3] = lambda: asyncio.sleep(1000)
        async with killed(store, chain, work) as engine:
            await engine.start(chain, 6, id="1")
            await asyncio.sleep(5)
            assert at_once == {"completed": 2, True: 1}
        deeds.clear()
        async with engine_on(store, chain, work) as engine:
            assert await engine.get(chain, "1").result() == 15
        assert begun == [0, 1, 2, 3, 3, 4, 5]

    run(main())


def test_a_step_that_the_engine_cannot_begin_stalls_its_run_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def faulty(*args: Any) -> Any:
        raise ZeroDivisionError("a bug of ours")

    async def main() -> None:
        async with engine_on(VirtualStore(), chain, work) as engine:
            with monkeypatch.context() as patch:
                patch.setattr("perdure.engine.runs.at_once.Order", faulty)
                started = await engine.start(chain, 6, id="1")
                await settle()
            told = (await started.describe()).stalled
            assert told is not None
            assert "a bug of ours" in told
            assert await engine.run(chain, 3, id="2") == 3  # others go on

    run(main())
