"""Types that must hold for steps, and mistakes that must be found (lines that end in `# E`)."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, assert_type

from perdure import Failure, Permanent, Retry, Step, StepContext, current_step, step
from perdure.flow.step import SyncStep

T = TypeVar("T")


@step
async def a(x: int, y: str = "", *, flag: bool = False) -> float:
    return 0.0


@step
def s(x: int) -> bytes:
    return b""


@step(retry=3)
def s2(*xs: int, **kw: str) -> list[int]:
    return []


@step(name="named", retry=Retry(5, jitter=0.2), timeout=None, queue="slow", priority=3)
async def named(x: int) -> str:
    return ""


@step
async def ident(x: T) -> T:
    return x


@step
async def nothing() -> None: ...


def keep(*values: object) -> None: ...


async def calls() -> None:
    assert_type(await a(1, "x", flag=True), float)
    assert_type(await s(1), bytes)
    assert_type(await s2(1, 2, k="v"), list[int])
    assert_type(await named(1), str)
    assert_type(await ident("q"), str)
    assert_type(await a.with_options(retry=1, timeout="5m", label="again")(1), float)
    assert_type(await s.with_options(timeout=timedelta(seconds=1))(1), bytes)
    both = await asyncio.gather(a(1), s(2))
    assert_type(both, tuple[float, bytes])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(s(1))
    assert_type(task.result(), bytes)
    assert_type(await asyncio.wait_for(a(1), 3), float)
    await a("no")  # E
    await a(1, flag="no")  # E
    await a()  # E
    await s(1, 2)  # E
    await named(x="no")  # E
    a(1)  # E
    a.with_options(retry="3")  # E
    a.with_options(name="other")  # E


def functions() -> None:
    assert_type(s.fn(1), bytes)
    synchronous: SyncStep[[int], bytes] = s
    empty: Step[[], None] = nothing
    bare: Callable[..., Any] = a.fn
    base: Step[[int], bytes] = s
    other: Step[[int], str] = s  # E
    assert_type(a.name, str)
    keep(bare, base, other, synchronous, empty)


def inside() -> None:
    context = current_step()
    assert_type(context, StepContext)
    assert_type(context.resource(dict), dict[Any, Any])
    assert_type(context.attempt, int)
    assert_type(context.idempotency_key, str)
    context.heartbeat({"done": 3})
    context.resource("dict")  # E


class CardDeclined(Failure, kind="card-declined", permanent=True): ...


def fail() -> None:
    try:
        raise CardDeclined("no funds", details={"code": 51}, retry_after="30s")
    except CardDeclined as error:
        assert_type(error.kind, str)
        raise Permanent(error) from error


@step(retry="3")  # E
def wrong_retry() -> None: ...


@step(colour="red")  # E
def wrong_option() -> None: ...


step(5)  # E
