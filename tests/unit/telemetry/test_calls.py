"""Client calls: each is one observation, and says how it went in a few known words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from perdure import (
    AlreadyStarted,
    Client,
    Context,
    DefinitionError,
    Engine,
    Failure,
    InvalidRequest,
    NotFound,
    Run,
    Signal,
    StoreError,
    Unsupported,
    step,
    workflow,
)
from perdure.errors import InvalidId
from perdure.model.driving import Outcome, StartRequest
from tests.virtual.collecting import Collector
from tests.virtual.engines import engine_on
from tests.virtual.loop import run, settle
from tests.virtual.stores import VirtualStore

answer = Signal("answer", str)


@step(timeout=None)
async def long() -> None:
    await asyncio.sleep(3600)


@workflow(max_duration="1d")
async def ask(ctx: Context, question: str) -> str:
    await long()
    return await ctx.wait(answer)


Act = Callable[[Engine], Coroutine[Any, Any, object]]


def told(seen: Collector, act: Act) -> list[tuple[str, ...]]:
    """What was seen of these calls."""

    async def main() -> None:
        async with engine_on(VirtualStore(), ask, telemetry=seen.telemetry) as engine:
            await act(engine)

    run(main())
    return seen.told("start", "signal", "cancel", "status", "result")


@pytest.mark.rule("W-58")
def test_start_signal_status_result_and_cancel_have_spans(seen: Collector) -> None:
    async def act(engine: Engine) -> None:
        handle = await engine.start(ask, "why?", id="a")
        await handle.status()
        await handle.signal(answer, "so")
        assert await handle.result() == "so"
        await handle.cancel()

    assert told(seen, act) == [
        ("start ask", "ok"),
        ("status ask", "ok"),
        ("signal ask", "ok"),
        ("result ask", "ok"),
        ("cancel ask", "ok"),
    ]
    kinds = {s.name.split()[0]: s.kind.name for s in seen.spans()}
    assert kinds == {
        "start": "PRODUCER",
        "step_attempt": "CONSUMER",
        "run": "INTERNAL",
        **dict.fromkeys(["status", "signal", "result", "cancel"], "CLIENT"),
    }
    assert dict(seen.spans("signal")[0].attributes or {}) == {
        "perdure.operation": "signal",
        "perdure.workflow": "ask",
        "perdure.outcome": "ok",
    }


@pytest.mark.rule("W-58")
def test_the_span_of_a_result_lasts_as_long_as_the_wait_and_no_longer(seen: Collector) -> None:
    async def act(engine: Engine) -> None:
        handle = await engine.start(ask, "why?", id="a")
        await handle.signal(answer, "so")
        await settle()
        await handle.result()
        await handle.result()

    told(seen, act)
    [start], [attempt] = seen.spans("start"), seen.spans("step_attempt")
    waited, again = seen.spans("result")
    assert start.end_time is not None
    assert attempt.start_time is not None
    assert waited.start_time is not None
    assert attempt.end_time is not None
    assert waited.end_time is not None
    assert again.start_time is not None
    assert start.end_time <= waited.start_time
    assert attempt.start_time <= waited.start_time, "it was under way before anybody waited"
    assert attempt.end_time <= waited.end_time, "the run ended during the wait"
    assert waited.end_time <= again.start_time, "a second wait is a second observation"


@pytest.mark.rule("W-58")
def test_a_run_that_is_there_already_is_an_expected_outcome(seen: Collector) -> None:
    async def act(engine: Engine) -> None:
        await engine.start(ask, "why?", id="a")
        with pytest.raises(AlreadyStarted):
            await engine.start(ask, "why?", id="a")
        await engine.start(ask, "why?", id="a", if_exists="join")

    assert told(seen, act) == [
        ("start ask", "ok"),
        ("start ask", "exists"),
        ("start ask", "exists"),
    ]
    assert all(span.status.is_unset for span in seen.spans("start"))
    assert seen.counts()[("start", "exists")] == 2


@pytest.mark.rule("W-58")
def test_a_start_is_one_observation_with_its_checks_and_its_encoding(seen: Collector) -> None:
    async def act(engine: Engine) -> None:
        with pytest.raises(InvalidRequest):
            await engine.start(ask, object())  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest):
            await engine.start(ask, 12)  # type: ignore[arg-type]
        with pytest.raises(InvalidId):
            await engine.start(ask, "why?", id="")
        with pytest.raises(DefinitionError):
            await engine.start(long, None)  # type: ignore[call-overload]
        with pytest.raises(NotFound):
            await engine.start("nobody-knows")

    assert told(seen, act) == [
        ("start ask", "error", "invalid"),
        ("start ask", "error", "invalid"),
        ("start ask", "error", "invalid"),
        ("start", "error", "invalid"),
        ("start nobody-knows", "error", "not_found"),
    ]


class Declined(Failure, kind="declined-as-seen"): ...


class Panic(BaseException):
    """What no library may hold up."""


class Answering:
    """A driver that answers with what it is told to raise."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.starts: list[StartRequest] = []

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def definition(self, name: str, /) -> Any: ...

    async def start(self, request: StartRequest, /) -> bool:
        self.starts.append(request)
        raise self.error

    async def result(self, workflow: str, id: str, /) -> Outcome:
        raise self.error

    async def status(self, workflow: str, id: str, /) -> Any:
        raise self.error

    async def signal(
        self, workflow: str, id: str, name: str, value: bytes, key: str | None, /
    ) -> None:
        raise self.error

    async def cancel(self, workflow: str, id: str, reason: str, /) -> None:
        raise self.error


def calls(client: Client, handle: Run[Any]) -> dict[str, Callable[[], Coroutine[Any, Any, Any]]]:
    return {
        "start": lambda: client.start(ask, "secret why", id="secret id"),
        "signal": lambda: handle.signal(answer, "secret value"),
        "cancel": lambda: handle.cancel("secret reason"),
        "status": handle.status,
        "result": handle.result,
    }


def call(seen: Collector, operation: str, error: BaseException) -> None:
    """Make the call, which comes out with this very error."""

    async def main() -> None:
        client = Client(Answering(error), telemetry=seen.telemetry)
        with pytest.raises(type(error)) as caught:
            await calls(client, client.get(ask, "secret id"))[operation]()
        assert caught.value is error

    asyncio.run(main())


@pytest.mark.rule("W-58", "W-60")
@pytest.mark.parametrize("operation", ["start", "signal", "cancel", "status", "result"])
@pytest.mark.parametrize(
    ("error", "type"),
    [
        (NotFound("secret text"), "not_found"),
        (Unsupported("secret text"), "unsupported"),
        (StoreError("secret text"), "store"),
        (Declined("secret text"), "failed"),
        (ValueError("secret text"), "_OTHER"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_an_error_is_told_by_its_type_alone(
    seen: Collector, operation: str, error: BaseException, type: str
) -> None:
    call(seen, operation, error)
    assert seen.told() == [(f"{operation} ask", "error", type)]
    assert seen.counts() == {(operation, "error", type): 1}
    assert "secret" not in seen.everything()
    assert not seen.spans()[0].status.is_ok


@pytest.mark.rule("W-62")
@pytest.mark.parametrize("operation", ["start", "signal", "cancel", "status", "result"])
def test_what_goes_through_a_call_closes_it_and_goes_on_as_it_is(
    seen: Collector, operation: str
) -> None:
    call(seen, operation, Panic("secret text"))
    assert seen.told() == [(f"{operation} ask", "panic")]
    assert seen.counts() == {(operation, "panic"): 1}
    assert "secret" not in seen.everything()
    assert "Panic" not in seen.everything()


def test_a_wait_that_somebody_gives_up_is_no_failure(seen: Collector) -> None:
    async def act(engine: Engine) -> None:
        handle = await engine.start(ask, "why?", id="a")
        waiting = asyncio.ensure_future(handle.result())
        await settle()
        waiting.cancel()
        await asyncio.wait([waiting])
        with pytest.raises(TimeoutError):
            await handle.result(timeout=1)

    assert told(seen, act)[1:] == [("result ask", "canceled"), ("result ask", "error", "timeout")]


def test_a_name_that_could_be_none_is_not_told(seen: Collector) -> None:
    async def act(engine: Engine) -> None:
        with pytest.raises(NotFound):
            await engine.get("ann@example.com's order", "a").status()

    assert told(seen, act) == [("status", "error", "not_found")]
    assert "ann" not in seen.everything()


@pytest.mark.rule("W-60")
def test_nothing_that_belongs_to_a_run_gets_into_telemetry(seen: Collector) -> None:
    secret = "s3cret"

    @step
    async def echo(text: str) -> str:
        return text

    @workflow(max_duration="1d")
    async def private(ctx: Context, text: str) -> str:
        await echo(text)
        return await ctx.wait(answer[secret]) + text

    async def main() -> None:
        async with engine_on(VirtualStore(), private, telemetry=seen.telemetry) as engine:
            handle = await engine.start(
                private, secret, id=secret, metadata={"of": secret, secret: "x"}
            )
            await handle.signal(answer[secret], secret, dedupe_key=secret)
            assert await handle.result() == secret * 2
            await handle.cancel(secret)

    run(main())
    assert len(seen.spans()) == 6
    assert secret not in seen.everything()
    labels = {name for p in seen.points("perdure.operations") for name in p.attributes}
    labels |= {name for p in seen.points("perdure.operation.duration") for name in p.attributes}
    assert labels <= {"perdure.operation", "perdure.outcome", "error.type"}


def test_instruments_say_their_scope_and_units(seen: Collector) -> None:
    told(seen, lambda engine: engine.start(ask, "why?", id="a", delay="1h"))
    [span] = seen.spans()
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "perdure"
    [point] = seen.points("perdure.operation.duration")
    assert point.explicit_bounds[0] == 0.001, "in seconds"
