"""Random workflows that call one step after another, drawn as data and run by one interpreter; and
steps that do what steps may do, to their task, to their run, to the engine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from hypothesis import strategies as st

from perdure.client.engine import Engine
from perdure.client.run import Run
from perdure.flow.context import Context
from perdure.flow.signal import Channel
from perdure.flow.step import step
from perdure.flow.workflow import Workflow, workflow
from perdure.model.errors import Failure
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from tests.property.engine.attempts import Odd

NEWS = Channel("news", int)
#: Set by the engine's opening, by workflows and by steps: each sees its own alone.
VAR: ContextVar[str] = ContextVar("var", default="nobody's")
LARGE = "x" * 6000
Op = tuple[Any, ...]


class Scene:
    """Where the steps find what they do it to; what they and the workflows saw, in order."""

    def __init__(self) -> None:
        self.engine: Engine = None  # type: ignore[assignment]
        self.seen: list[Any] = []
        self.left: list[Any] = []

    def run(self) -> Run[Any]:
        """The run of the step that asks."""
        me = current_step()
        return self.engine.get(me.workflow, me.run_id)

    def later(self, work: Any, seconds: float = 0) -> None:
        """In a task of its own."""

        async def works() -> None:
            await asyncio.sleep(seconds)
            try:
                await work
            except Exception as error:
                self.seen.append(["later", type(error).__name__])

        self.left.append(asyncio.create_task(works()))

    def look(self, who: str) -> None:
        """What surrounds the code that asks, be it a step's or a workflow's."""
        loop, task, error = asyncio.get_running_loop(), asyncio.current_task(), sys.exception()
        assert task is not None
        hooks: Any = sys.get_asyncgen_hooks()
        # Code that is closed is so in the context of whoever let go of it.
        var = "closed" if loop.is_closed() else VAR.get()
        self.seen.append([
            who, type(loop).__name__, loop.time(), task.get_loop() is loop, var,
            type(error).__name__, getattr(hooks.finalizer, "__self__", None) is loop,
            task.cancelling(),
        ])  # fmt: skip


scene = Scene()


# ------------------------------------------------------------------------------------- steps


def _task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def _is_resolved() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    await event.wait()


async def _blocks() -> None:
    loop: Any = asyncio.get_running_loop()
    loop._virtual += 0.003


async def _fails() -> None:
    raise ValueError("no")


async def _fails_once() -> None:
    if current_step().attempt == 1:
        raise ValueError("not yet")


async def _is_odd() -> None:
    raise Odd("odd")


async def _is_stopped() -> None:
    raise StopIteration("stopped")


async def _says_cancelled() -> None:
    raise asyncio.CancelledError("so it says")


async def _cancels() -> None:
    _task().cancel()


async def _cancels_and_fails() -> None:
    _task().cancel()
    raise ValueError("cancelled and failed")


async def _cancels_and_waits() -> None:
    if current_step().attempt == 1:
        _task().cancel()
    await asyncio.sleep(0)


async def _takes_it_back() -> None:
    _task().cancel()
    _task().uncancel()


async def _signals() -> None:
    await scene.run().signal(NEWS, 1)


async def _signals_and_waits() -> None:
    await scene.run().signal(NEWS, 2)
    await asyncio.sleep(0.5)


async def _signals_and_fails() -> None:
    await scene.run().signal(NEWS, 3)
    raise ValueError("signaled and failed")


async def _signals_later() -> None:
    scene.later(scene.run().signal(NEWS, 4))


async def _cancels_run() -> None:
    await scene.run().cancel("enough")


async def _cancels_run_and_waits() -> None:
    await scene.run().cancel("enough")
    await asyncio.sleep(0.5)


async def _cancels_run_later() -> None:
    scene.later(scene.run().cancel("enough"))


async def _pauses() -> None:
    run = scene.run()
    await run.pause()
    scene.later(run.unpause(), 1)


async def _pauses_and_goes_on() -> None:
    run = scene.run()
    await run.pause()
    await run.unpause()


async def _starts() -> None:
    await scene.engine.start(other, 7)


async def _drops() -> None:
    if current_step().attempt == 1 and "dropped" not in scene.seen:
        scene.seen.append("dropped")
        shell, me = scene.engine._shell, current_step()
        key = shell.key_of(me.workflow, me.run_id)
        assert key is not None
        shell.drop(shell.live[key])


async def _loses_the_lease() -> None:
    shell = scene.engine._shell
    before, shell.lease_over = shell.lease_over, 0.0
    asyncio.get_running_loop().call_later(1, shell.leased, before)


async def _leaves_a_generator() -> None:
    async def counts() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            scene.look("a step's generator")

    async for _ in counts():
        break


async def _nothing() -> None:
    pass


def _waits(seconds: float) -> Callable[[], Awaitable[None]]:
    async def waits() -> None:
        await asyncio.sleep(seconds)

    return waits


def _returns(value: Any) -> Callable[[], Awaitable[Any]]:
    async def returns() -> Any:
        return value

    return returns


QUICK: dict[str, Callable[[], Awaitable[Any]]] = {
    "nothing": _nothing,
    "returns much": _returns(LARGE),
    "blocks": _blocks,
    "takes it back": _takes_it_back,
    "signals": _signals,
    "signals later": _signals_later,
    "starts another": _starts,
    "leaves a generator": _leaves_a_generator,
}
DEEDS: dict[str, Callable[[], Awaitable[Any]]] = {
    **QUICK,
    "gives way": _waits(0),
    "waits": _waits(0.5),
    "waits too long": _waits(90),
    "is resolved": _is_resolved,
    "fails": _fails,
    "fails once": _fails_once,
    "is odd": _is_odd,
    "is stopped": _is_stopped,
    "returns nothing that can be recorded": _returns(object()),
    "says it was cancelled": _says_cancelled,
    "cancels": _cancels,
    "cancels and fails": _cancels_and_fails,
    "cancels and waits": _cancels_and_waits,
    "signals and waits": _signals_and_waits,
    "signals and fails": _signals_and_fails,
    "cancels its run": _cancels_run,
    "cancels its run and waits": _cancels_run_and_waits,
    "cancels its run later": _cancels_run_later,
    "pauses": _pauses,
    "pauses and goes on": _pauses_and_goes_on,
    "drops its run": _drops,
    "loses the lease": _loses_the_lease,
}


@step(retry=Retry(2, initial=1))
async def do(deed: str) -> Any:
    scene.look(f"{current_step().run_id} {current_step().node} {current_step().attempt}")
    VAR.set("a step's")
    return await DEEDS[deed]()


@step
def in_a_thread(number: int) -> int:
    scene.seen.append(["thread", current_step().node, VAR.get()])
    return number


@step
async def undo(number: int) -> int:
    scene.look(f"{current_step().node}")
    return number


@workflow(max_duration=None)
async def other(ctx: Context, number: int) -> int:
    VAR.set("another workflow's")
    for _ in range(2):
        await undo(number)
    scene.look("other")
    return number


# ------------------------------------------------------------------------------------- workflows

FAILURES = (Failure, TimeoutError, RuntimeError)


class Player:
    """Runs a program inside a workflow."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    async def all(self, ops: list[Op]) -> list[Any]:
        return [await self.one(op) for op in ops]

    async def one(self, op: Op) -> Any:
        try:
            value = await getattr(self, f"do_{op[0]}")(*op[1:])
        except FAILURES:
            scene.look(f"{op[0]} failed")
            raise
        scene.look(op[0])
        return value

    async def do_step(self, deed: str) -> Any:
        return await do(deed)

    async def do_chain(self, deeds: list[str]) -> list[Any]:
        return [await do(deed) for deed in deeds]

    async def do_long(self, number: int) -> int:
        return len([await undo(number) for _ in range(number)])

    async def do_thread(self, number: int) -> int:
        return await in_a_thread(number)

    async def do_sleep(self, seconds: int) -> None:
        await self.ctx.sleep(seconds)

    async def do_nap(self, seconds: int) -> None:
        await asyncio.sleep(seconds)

    async def do_receive(self, seconds: int) -> int:
        return await self.ctx.receive(NEWS, timeout=seconds)

    async def do_var(self, number: int) -> None:
        VAR.set(f"the workflow's {number}")

    async def do_child(self, number: int) -> int:
        return await self.ctx.child(other, number)

    # ------------------------------------------------------------------ around others

    async def do_try(self, body: list[Op], handler: list[Op]) -> list[Any]:
        try:
            return await self.all(body)
        except FAILURES:
            return await self.all(handler)  # while the failure is being handled

    async def do_finally(self, body: list[Op], last: list[Op]) -> list[Any]:
        try:
            return await self.all(body)
        finally:
            await self.all(last)

    async def do_helper(self, body: list[Op], after: list[Op]) -> list[Any]:
        async def helper() -> list[Any]:
            return await self.all(body)

        return [await helper(), await self.all(after)]

    async def do_generator(self, body: list[Op], inside: list[Op]) -> list[Any]:
        async def gives() -> AsyncIterator[Any]:
            try:
                for op in body:
                    yield await self.one(op)
            finally:
                scene.look("a workflow's generator")

        return [(value, await self.all(inside[:1])) async for value in gives()]

    async def do_gather(self, one: list[Op], two: list[Op]) -> list[Any]:
        got = await asyncio.gather(self.all(one), self.all(two), return_exceptions=True)
        return [value if isinstance(value, list) else type(value).__name__ for value in got]

    async def do_group(self, one: list[Op], two: list[Op]) -> list[Any]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.all(ops)) for ops in (one, two)]
        except BaseExceptionGroup as errors:
            return [len(errors.exceptions)]
        return [task.result() for task in tasks]

    async def do_task(self, body: list[Op], beside: list[Op]) -> list[Any]:
        task = asyncio.create_task(self.all(body))
        try:
            return [await self.all(beside), await task]
        finally:
            task.cancel()

    async def do_eager(self, body: list[Op], after: list[Op]) -> list[Any]:
        eager: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
        loop = asyncio.get_running_loop()
        task: asyncio.Task[Any] = asyncio.Task(self.all(body), loop=loop, **eager)
        return [await task, await self.all(after)]

    async def do_timeout(self, body: list[Op], after: list[Op]) -> list[Any]:
        try:
            async with asyncio.timeout(3):
                return await self.all(body)
        except TimeoutError:
            return await self.all(after)

    async def do_saga(self, body: list[Op], after: list[Op]) -> list[Any]:
        async with self.ctx.saga() as saga:
            await saga.run(do, "nothing", undo=undo)
            saga.undo(undo, 1)
            await self.all(body)
        return await self.all(after)


@st.composite
def _leaves(draw: st.DrawFn) -> Op:
    kind = draw(st.sampled_from(
        ["chain"] * 3 + ["step"] * 3
        + ["thread", "sleep", "nap", "receive", "var", "child", "long"]
    ))  # fmt: skip
    if kind == "chain":
        deeds = st.sampled_from(["nothing"] * 8 + [*QUICK])
        return (kind, draw(st.lists(deeds, min_size=1, max_size=6)))
    if kind == "step":
        return (kind, draw(st.sampled_from([*DEEDS])))
    if kind == "long":
        return (kind, draw(st.sampled_from([3, 64, 65, 70])))
    return (kind, draw(st.integers(1, 5)))


AROUND = ["try", "finally", "helper", "generator", "gather", "group", "task", "eager", "timeout"]
AROUND += ["saga"]


def _around(inner: st.SearchStrategy[Op]) -> st.SearchStrategy[Op]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.tuples(st.sampled_from(AROUND), some, some)


def programs() -> st.SearchStrategy[list[Op]]:
    """A few operations in sequence."""
    return st.lists(st.recursive(_leaves(), _around, max_leaves=8), min_size=1, max_size=4)


def workflow_of(ops: list[Op]) -> Workflow[Any, Any]:
    """A workflow that runs the program and returns what each operation gave."""

    @workflow(max_duration="1h", name="chain")
    async def play(ctx: Context) -> list[Any]:
        VAR.set("the workflow's")
        player = Player(ctx)
        try:
            return await player.all(ops)
        except BaseException as error:
            scene.seen.append(["ended", type(error).__name__])
            raise

    return play
