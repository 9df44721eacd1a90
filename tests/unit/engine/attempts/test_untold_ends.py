"""How an attempt of a saga's step may end, and what that says of its effect: what raised of its own
is taken at its word, and all else may have happened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from perdure import Canceled, Codec, Engine, Failure, Permanent, Retry, Saga, SagaContext
from perdure import TimedOut as NoAnswer
from perdure.engine.handlers.port import Attempt, StepNotRegistered
from perdure.model.errors import RunFailed
from tests.virtual.engines import client_on, engine_on, killed
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
SEEN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


async def reserve(ctx: SagaContext[str]) -> None: ...


async def undo(ctx: SagaContext[str]) -> None:
    SEEN.append(ctx.node)


class Panic(BaseException):
    """Of an extension module."""


def of(charge: Any, **options: Any) -> Saga[str]:
    return (
        Saga("pay", str, max_duration="1h").step("reserve", reserve, undo=undo)
        .step("charge", charge, undo=undo, **options)
    )  # fmt: skip


Play = Callable[[Engine, Saga[str]], Awaitable[Any]]


async def start(engine: Engine, saga: Saga[str]) -> Any:
    return await engine.run(saga, "ann", id="1")


def ended(saga: Saga[str], kind: Any = VirtualStore, play: Play = start, **options: Any) -> Failure:
    """What the run fails with."""

    async def main() -> Failure:
        async with engine_on(kind(), saga, **options) as engine:
            with pytest.raises(Failure) as failed:
                await play(engine, saga)
            return failed.value

    return run(main())


def unknown(failure: Failure) -> bool:
    """Whether nobody knows what `charge` did, as the failure says it; then it was undone."""
    details: Any = failure.details
    assert details["undone"] == [n.removesuffix("~undo") for n in SEEN if n.endswith("~undo")]
    assert details["undone"][-1] == "reserve"
    assert (details["unknown"] == ["charge"]) == ("charge" in details["undone"])
    return details["unknown"] == ["charge"]


async def sleeps(ctx: SagaContext[str]) -> None:
    await asyncio.sleep(100)


async def complains(ctx: SagaContext[str]) -> None:
    try:
        await asyncio.sleep(100)
    finally:
        raise ConnectionResetError("while it was stopped")


async def forgives(ctx: SagaContext[str]) -> None:
    """Takes back what stopped it, and fails of its own."""
    try:
        await asyncio.sleep(100)
    except asyncio.CancelledError:
        this: Any = asyncio.current_task()
        this.uncancel()
    raise ConnectionResetError("while it was stopped")


@STORES
@pytest.mark.rule("S-15", "S-18", "D-18")
@pytest.mark.parametrize("charge", [sleeps, complains, forgives])
def test_an_attempt_whose_time_was_over_may_have_done_it(kind: Any, charge: Any) -> None:
    failure = ended(of(charge, timeout="5s", retry=Retry(2, initial=1)), kind)
    assert unknown(failure)
    if charge is not forgives:
        assert isinstance(failure, NoAnswer)
        assert "attempt 2 of node charge took longer than 5 s" in str(failure)
    assert failure.compensated


def raising(error: BaseException) -> Any:
    async def charge(ctx: SagaContext[str]) -> None:
        await asyncio.sleep(0)
        raise error

    return charge


@pytest.mark.rule("S-15", "S-12", "SX-5")
@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (ValueError("declined"), False),
        (Permanent(ValueError("declined")), False),
        (Failure("declined"), False),
        (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), False),
        (TimeoutError("of a socket"), True),
        (Permanent(TimeoutError("of a socket")), True),
        (NoAnswer("of another run"), True),
        (Canceled("of another run"), True),
        (ExceptionGroup("two", [ValueError("a"), TimeoutError("b")]), True),
        (asyncio.CancelledError("of its own"), True),
        (Panic("index out of bounds"), True),
        (GeneratorExit("of its own"), True),
        (BaseExceptionGroup("one", [Panic("x")]), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_step_raises_is_its_word_unless_it_says_nothing_of_the_effect(
    error: BaseException, lost: bool
) -> None:
    failure = ended(of(raising(error)))
    assert unknown(failure) == lost
    assert failure.details["node"] == "charge"  # type: ignore[index,call-overload]


def circle() -> Any:
    made: list[Any] = []
    made.append(made)
    return made


def returning(value: Any) -> Any:
    async def charge(ctx: SagaContext[str]) -> Any:
        SEEN.append("charged")
        return value

    return charge


class Picky(Codec):
    def encode(self, value: object, /) -> bytes:
        if isinstance(value, float):
            raise OverflowError("no floats")
        return super().encode(value)


@pytest.mark.rule("S-15", "S-24")
@pytest.mark.parametrize("codec", [None, Picky()], ids=["plain", "of its own"])
@pytest.mark.parametrize(
    "value",
    [float("nan"), "x" * (4 << 20), circle(), "\ud800", object()],
    ids=["nan", "large", "circle", "surrogate", "object"],
)
def test_a_step_that_returned_what_cannot_be_recorded_did_it_and_is_not_called_again(
    value: Any, codec: Codec | None
) -> None:
    failure = ended(of(returning(value), retry=Retry(3, initial=1)), codec=codec)
    assert SEEN == ["charged", "charge~undo", "reserve~undo"]
    assert failure.details["unknown"] == ["charge"]  # type: ignore[index,call-overload]
    assert "the output of node charge cannot be recorded" in str(failure)


@pytest.mark.rule("S-15")
def test_a_def_that_returned_a_coroutine_may_have_done_it() -> None:
    async def later() -> None: ...

    def charge(ctx: SagaContext[str]) -> Any:
        return later()

    async def main() -> None:
        saga = of(charge, retry=3)
        async with Engine("memory:", [saga]) as engine:
            with pytest.raises(Permanent, match="returned a coroutine") as failed:
                await engine.run(saga, "ann", id="1")
            assert unknown(failed.value)

    asyncio.run(main())


@pytest.mark.rule("S-16")
@pytest.mark.parametrize("codec", [None, Picky()], ids=["plain", "of its own"])
def test_an_undo_that_returned_has_undone_whatever_it_returned(codec: Codec | None) -> None:
    async def refund(ctx: SagaContext[str]) -> Any:
        SEEN.append(ctx.node)
        ctx.set("refunded", True)
        return float("nan")

    async def look(ctx: SagaContext[str]) -> None:
        SEEN.append(f"refunded: {ctx.get('refunded')}")

    saga = (
        Saga("pay", str).step("a", reserve, undo=look).step("b", reserve, undo=refund)
        .step("c", raising(ValueError("no stock")))
    )  # fmt: skip
    failure = ended(saga, codec=codec)
    assert SEEN == ["b~undo", "refunded: True"]
    assert failure.compensated


@pytest.mark.rule("D-36", "SX-5")
def test_only_an_attempt_s_own_handler_says_that_there_is_nothing_to_run() -> None:
    """A step that works on another engine may well be told that; its own run does not stall."""
    other = Attempt("other", "7", "n", "TASK", "t1", 0, None)
    error = StepNotRegistered("not registered there", "pack", other)
    failure = ended(of(raising(error)))
    assert not unknown(failure)
    assert "not registered there" in str(failure)


# ---------------------------------------------------------------------- processes that end


async def declined(ctx: SagaContext[str]) -> None:
    """Hangs the first time it is called, in whatever process; then says no."""
    SEEN.append("charge")
    if SEEN.count("charge") == 1:
        await asyncio.sleep(1000)
    raise ValueError("declined")


@STORES
@pytest.mark.rule("S-15", "S-21", "S-24", "D-18")
@pytest.mark.parametrize("how", ["killed", "closed"])
def test_an_attempt_lost_with_its_process_is_not_forgotten_when_made_again_it_fails(
    kind: type[VirtualStore], how: str
) -> None:
    async def main() -> None:
        store, saga = kind(), of(declined)
        before = killed(store, saga) if how == "killed" else engine_on(store, saga, grace=0)
        async with before as engine:
            await engine.start(saga, "ann", id="1")
            await asyncio.sleep(5)
        async with engine_on(store, saga) as engine:
            with pytest.raises(RunFailed, match="declined") as failed:
                await engine.get(saga, "1").result()
            assert unknown(failed.value)

    run(main())


async def says_no(ctx: SagaContext[str]) -> None:
    SEEN.append("charge")
    raise ValueError("declined")


@STORES
@pytest.mark.rule("S-15", "D-18")
@pytest.mark.parametrize("delay", [0, 30])
def test_what_was_started_elsewhere_had_not_begun_there(
    kind: type[VirtualStore], delay: int
) -> None:
    async def main() -> None:
        store, saga = kind(), Saga("pay", str).step("charge", says_no, undo=undo)
        async with client_on(store) as client:
            await client.start(saga, "ann", id="1", delay=delay)
        await asyncio.sleep(100)
        async with engine_on(store, saga) as engine:
            with pytest.raises(RunFailed, match="declined") as failed:
                await engine.get(saga, "1").result()
            assert failed.value.details == {
                "node": "charge", "attempt": 1, "failed": 1, "details": None,
                "undone": [], "undo_failed": [], "unknown": [],
            }  # fmt: skip
            SEEN.clear()
            await engine.get(saga, "1").retry(failed=True)
            with pytest.raises(RunFailed, match="declined") as failed:
                await engine.get(saga, "1").result()
            assert (failed.value.details["unknown"], SEEN) == ([], ["charge"])

    run(main())


@STORES
@pytest.mark.rule("D-18")
def test_a_run_canceled_before_anybody_had_it_did_nothing(kind: type[VirtualStore]) -> None:
    async def main() -> None:
        store, saga = kind(), of(says_no)
        async with client_on(store) as client:
            started = await client.start(saga, "ann", id="1")
            await asyncio.sleep(100)
            await started.cancel("enough")
            await asyncio.sleep(100)
        async with engine_on(store, saga) as engine:
            with pytest.raises(Canceled, match="enough") as ended:
                await engine.get(saga, "1").result()
            assert ended.value.details == {"undone": [], "undo_failed": [], "unknown": []}
            assert SEEN == []

    run(main())


@STORES
@pytest.mark.rule("S-15", "S-13")
def test_what_was_parked_between_two_attempts_had_not_begun(kind: type[VirtualStore]) -> None:
    async def main() -> None:
        store, saga = kind(), of(says_no, retry=Retry(3, initial=60, max_delay=60))
        async with engine_on(store, saga) as engine:
            started = await engine.start(saga, "ann", id="1")
            await asyncio.sleep(30)
            assert not engine._shell.live, "it is parked"
            with pytest.raises(RunFailed, match="declined") as failed:
                await started.result()
            assert not unknown(failed.value)
            assert SEEN == ["charge"] * 3 + ["reserve~undo"]
            row = await store.describe("pay", "1")
            assert row.epoch >= 2

    run(main())


@pytest.mark.rule("D-18")
def test_a_first_try_that_something_cancelled_is_not_forgotten_when_made_again_it_fails() -> None:
    async def charge(ctx: SagaContext[str]) -> None:
        SEEN.append("charge")
        if len(SEEN) == 1:
            this: Any = asyncio.current_task()
            asyncio.get_running_loop().call_soon(this.cancel)
            await asyncio.sleep(100)
        raise ValueError("declined")

    failure = ended(of(charge))
    assert SEEN[:2] == ["charge", "charge"]
    assert unknown(failure)


@pytest.mark.rule("D-18")
def test_a_try_that_something_cancelled_is_not_taken_for_one_that_never_began() -> None:
    async def charge(ctx: SagaContext[str]) -> None:
        SEEN.append("charge")
        this: Any = asyncio.current_task()
        asyncio.get_running_loop().call_soon(this.cancel)
        await asyncio.sleep(100)

    async def play(engine: Engine, saga: Saga[str]) -> Any:
        started = await engine.start(saga, "ann", id="1")
        await settle()
        await started.pause()
        await asyncio.sleep(5)  # to be made once more: a pause holds it
        await started.cancel("enough")
        await settle()
        await started.unpause()
        return await started.result()

    failure = ended(of(charge), play=play)
    assert SEEN == ["charge", "charge~undo", "reserve~undo"]
    assert unknown(failure)
