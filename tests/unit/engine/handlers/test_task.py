"""TaskHandler: steps by name, on the loop or in threads; what they raise never escapes as it may.

Threads are steered by events: nothing here waits for time to pass.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from perdure.engine.handlers.port import Attempt
from perdure.engine.handlers.task import StepNotRegistered, TaskHandler
from perdure.flow.step import Step, step
from perdure.model.errors import InvalidRequest, Permanent
from perdure.model.policy import Retry
from perdure.model.step_context import CURRENT, StepContext, current_step


class Odd(BaseException):
    """A user's exception that is no Exception."""


def attempt(name: str, *input: Any, timeout: int | None = None) -> Attempt:
    spec: dict[str, Any] = {"step": name}
    if input:
        spec["input"] = input[0]
    return Attempt("order", "o-1", "ship", "TASK", "t1", 0, spec, timeout)


def context() -> StepContext:
    return StepContext(attempt("ship"))


def handler(*steps: Step[..., Any], threads: int | None = 2) -> TaskHandler:
    return TaskHandler({s.name: s for s in steps}, threads)


def run(one: Step[..., Any], *input: Any) -> Any:
    async def main() -> Any:
        tasks = handler(one)
        try:
            return await tasks.run(attempt(one.name, *input), context())
        finally:
            await tasks.close()

    return asyncio.run(main())


def both(body: Callable[[], Any]) -> list[Step[..., Any]]:
    """The body as an `async def` step and as a `def` step."""

    async def on_the_loop() -> Any:
        return body()

    def in_a_thread() -> Any:
        return body()

    return [step(on_the_loop), step(in_a_thread)]


@step
async def pack(order: str, gift: bool = False) -> str:
    return f"{order}:{gift}"


@step(retry=Retry(4, never_on=KeyError), timeout="5s")
def weigh(order: str) -> int:
    return len(order)


def test_an_async_step_runs_in_the_caller_s_own_task() -> None:
    @step
    async def where() -> object:
        return asyncio.current_task()

    async def main() -> bool:
        return await handler(where).run(attempt("where"), context()) is asyncio.current_task()

    assert asyncio.run(main())


def test_input_is_bound_to_the_function_s_parameters() -> None:
    assert run(pack, {"order": "a", "gift": True}) == "a:True"
    assert run(pack, {"order": "a"}) == "a:False"
    assert run(weigh, "four") == 4


def test_a_def_runs_in_a_thread_with_the_context_of_its_attempt() -> None:
    @step
    def where() -> Any:
        return threading.get_ident(), threading.current_thread().name, current_step().node

    async def main() -> Any:
        CURRENT.set(context())
        tasks = handler(where)
        found = await tasks.run(attempt("where"), CURRENT.get())
        await tasks.close()
        return found

    thread, name, node = contextvars.copy_context().run(asyncio.run, main())
    assert thread != threading.get_ident()
    assert name.startswith("perdure-step")
    assert node == "ship"


def test_no_more_threads_than_allowed_run_at_a_time() -> None:
    lock, now, most = threading.Lock(), [0], [0]
    full = threading.Barrier(2)

    @step
    def busy() -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        full.wait()
        with lock:
            now[0] -= 1

    async def main() -> None:
        tasks = handler(busy, threads=2)
        await asyncio.gather(*(tasks.run(attempt("busy"), context()) for _ in range(8)))
        await tasks.close()

    asyncio.run(main())
    assert most[0] == 2


@pytest.mark.rule("D-36")
def test_an_unknown_step_is_told_apart_and_similar_names_are_shown() -> None:
    async def main() -> None:
        await handler(pack, weigh).run(attempt("pak", "x"), context())

    with pytest.raises(StepNotRegistered) as error:
        asyncio.run(main())
    assert error.value.step == "pak"
    assert "'pak' of order/o-1, node ship" in str(error.value)
    assert "similar: pack" in str(error.value)


@pytest.mark.parametrize("spec", [None, {}, {"step": None}, {"step": 5}, []])
def test_a_spec_without_a_step_s_name_is_an_unknown_step(spec: Any) -> None:
    tasks = handler(pack)
    odd = Attempt("order", "o-1", "ship", "TASK", "t1", 0, spec)
    with pytest.raises(StepNotRegistered):
        asyncio.run(tasks.run(odd, context()))
    assert tasks.timeout(odd) == 0


def test_input_that_does_not_fit_is_a_permanent_failure() -> None:
    with pytest.raises(Permanent, match="lacks order") as error:
        run(pack, {"gift": True})
    assert error.value.kind == "InvalidRequest"
    assert isinstance(error.value.__cause__, InvalidRequest)


def test_an_invalid_request_raised_by_the_step_itself_may_be_tried_again() -> None:
    def body() -> None:
        raise InvalidRequest("mine")

    for one in both(body):
        with pytest.raises(InvalidRequest, match="mine"):
            run(one)


def test_exceptions_of_the_step_come_out_as_they_are() -> None:
    def body() -> None:
        raise KeyError("k")

    for one in both(body):
        with pytest.raises(KeyError):
            run(one)


@pytest.mark.rule("D-29")
@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_is_not_swallowed(ending: type[BaseException]) -> None:
    def body() -> None:
        raise ending

    for one in both(body):
        with pytest.raises(ending):
            run(one)


def test_a_thread_lives_on_after_a_step_raised_what_ends_the_process() -> None:
    # scenario 28
    raised = []

    @step
    def quits() -> int:
        if not raised:
            raised.append(1)
            raise SystemExit
        return 5

    async def main() -> int:
        tasks = handler(quits, threads=1)
        with pytest.raises(SystemExit):
            await tasks.run(attempt("quits"), context())
        result: int = await tasks.run(attempt("quits"), context())
        await tasks.close()
        return result

    assert asyncio.run(main()) == 5


def test_stop_iteration_ends_the_attempt_and_does_not_hang() -> None:
    def body() -> Any:
        return next(iter([]))

    for one in both(body):
        with pytest.raises(RuntimeError, match="StopIteration"):
            run(one)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # a thread's progress, seen without a clock
        await asyncio.sleep(0)


async def cancelled(work: Awaitable[Any], begun: Callable[[], bool]) -> asyncio.Task[Any]:
    async def main() -> Any:
        return await work

    task = asyncio.create_task(main())
    await until(begun)
    task.cancel()
    await asyncio.wait([task])
    return task


@pytest.mark.rule("D-29")
def test_a_cancelled_async_step_sees_it_and_the_cancellation_goes_on() -> None:
    log: list[str] = []

    @step
    async def waits() -> None:
        log.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cleaned")

    async def main() -> None:
        work = handler(waits).run(attempt("waits"), context())
        assert (await cancelled(work, lambda: bool(log))).cancelled()

    asyncio.run(main())
    assert log == ["begun", "cleaned"]


def test_a_cancelled_def_is_told_and_left_to_end_and_its_late_result_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # scenario 36
    go, begun = threading.Event(), threading.Event()

    @step
    def slow() -> str:
        begun.set()
        go.wait()
        return "late"

    async def main() -> None:
        tasks, seen = handler(slow), context()
        task = await cancelled(tasks.run(attempt("slow"), seen), begun.is_set)
        assert task.cancelled()
        assert (seen.canceled, tasks.zombies) == (True, 1)
        go.set()
        await until(lambda: tasks.zombies == 0)
        await tasks.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert "step slow was told to stop and keeps its thread (1 of 2 threads are so)" in caplog.text


def test_a_def_that_outlives_the_loop_ends_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go, begun = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    @step
    def slow() -> None:
        threads.append(threading.current_thread())
        begun.set()
        go.wait()

    async def main() -> None:
        tasks = handler(slow)
        await cancelled(tasks.run(attempt("slow"), context()), begun.is_set)
        await tasks.close()

    asyncio.run(main())
    caplog.clear()
    go.set()
    threads[0].join()
    assert caplog.records == []


def test_a_def_cancelled_before_it_got_a_thread_never_runs() -> None:
    go, begun, ran = threading.Event(), threading.Event(), []

    @step
    def blocks() -> None:
        begun.set()
        go.wait()

    @step
    def waits() -> None:
        ran.append(1)

    async def main() -> None:
        tasks = handler(blocks, waits, threads=1)
        first = asyncio.create_task(tasks.run(attempt("blocks"), context()))
        await until(begun.is_set)
        pool = tasks._executor
        assert pool is not None
        work = tasks.run(attempt("waits"), context())
        second = await cancelled(work, lambda: pool._calls.qsize() > 0)
        assert second.cancelled()
        assert tasks.zombies == 0
        go.set()
        await first
        await tasks.close()

    asyncio.run(main())
    assert ran == []


def test_a_def_that_ends_as_it_is_cancelled_keeps_its_outcome() -> None:
    # scenarios 28, 33
    done = threading.Event()

    @step
    def quick() -> str:
        return "done"

    async def main() -> Any:
        tasks, seen = handler(quick, threads=1), context()
        task = asyncio.create_task(tasks.run(attempt("quick"), seen))
        await asyncio.sleep(0)  # handed to the thread
        assert tasks._executor is not None
        # One thread: when this has run, the step has too; the loop has not seen either.
        tasks._executor.submit(done.set)
        done.wait()
        task.cancel()
        result = await task
        await tasks.close()
        return result, seen.canceled, task.cancelling()

    assert asyncio.run(main()) == ("done", True, 1)


def test_a_def_that_returns_a_coroutine_is_a_permanent_failure() -> None:
    async def inner() -> None: ...

    @step
    def hidden() -> Any:
        return inner()

    with pytest.raises(Permanent, match="step hidden is a `def` that returned a coroutine"):
        run(hidden)


@pytest.mark.rule("D-30")
def test_a_node_s_timeout_goes_before_its_step_s() -> None:
    tasks = handler(pack, weigh)
    assert tasks.timeout(attempt("weigh")) == 5_000_000
    assert tasks.timeout(attempt("pack")) == 60_000_000
    assert tasks.timeout(attempt("weigh", timeout=7)) == 7
    assert tasks.timeout(attempt("weigh", timeout=0)) == 0


@pytest.mark.rule("D-35")
def test_policy_and_retries_are_the_step_s_own() -> None:
    tasks = handler(pack, weigh)
    assert tasks.policy("weigh").attempts == 4
    assert tasks.policy("pack").attempts == tasks.policy("unknown").attempts == 1
    assert tasks.retries(attempt("weigh"), ValueError())
    assert not tasks.retries(attempt("weigh"), KeyError())
    assert tasks.retries(attempt("unknown"), KeyError())


def test_a_broken_retry_predicate_stops_the_attempts_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @step(retry=Retry(3, retry_on=lambda error: error.args[7]))
    async def picky() -> None: ...

    assert not handler(picky).retries(attempt("picky"), ValueError())
    assert "its retry_on failed" in caplog.text


def test_close_can_be_called_twice_and_work_after_it_gets_new_threads() -> None:
    async def main() -> Any:
        tasks = handler(weigh)
        await tasks.close()
        found = await tasks.run(attempt("weigh", "x"), context())
        await tasks.close()
        await tasks.close()
        return found

    assert asyncio.run(main()) == 1


def test_handlers_are_the_port_s() -> None:
    from perdure.engine.handlers.port import Handler

    taken: Handler = handler(pack)
    assert taken.policy("pack").attempts == 1
