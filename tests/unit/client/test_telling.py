"""What a client tells of its own calls: those that succeeded, by name and id, and nothing more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from perdure import (
    AlreadyStarted,
    Client,
    Context,
    Engine,
    InvalidRequest,
    NotFound,
    Signal,
    blocking,
    workflow,
)
from perdure.feed import (
    ClientEvent,
    RunCanceled,
    RunEvent,
    RunSignaled,
    RunStarted,
    WorkflowFinished,
)
from perdure.stores.memory import MemoryStore
from tests.virtual.engines import client_on, engine_on
from tests.virtual.loop import BEGIN, run
from tests.virtual.stores import VirtualStore

answer = Signal("answer", str)
BEGAN = datetime.fromtimestamp(BEGIN / 1_000_000, UTC)


@workflow(max_duration="1d")
async def ask(ctx: Context, question: str) -> str:
    return await ctx.wait(answer["one"])


def hear(client: Client | blocking.Client, kind: type[Any] = ClientEvent) -> list[Any]:
    heard: list[Any] = []
    client.listen(kind)(heard.append)
    return heard


def shown(events: list[Any]) -> list[tuple[Any, ...]]:
    return [(type(e).__name__, e.workflow, e.run_id, getattr(e, "signal", None)) for e in events]


@pytest.mark.parametrize("kind", [int, "WorkflowFailed", RunEvent | ClientEvent, print])
def test_an_engine_refuses_what_is_no_event(kind: Any) -> None:
    engine = Engine(MemoryStore())
    with pytest.raises(InvalidRequest, match=r"an engine tells nothing of .*: listen to an event"):
        engine.listen(kind)(print)


@pytest.mark.rule("W-57")
@pytest.mark.parametrize("make", [client_on, lambda store: engine_on(store, ask)])
def test_a_start_a_signal_and_a_cancel_are_told(make: Callable[[Any], Client]) -> None:
    heard: list[Any] = []

    async def main() -> None:
        async with make(VirtualStore()) as client:
            client.listen(ClientEvent)(heard.append)
            handle = await client.start(ask, "why?", id="a", metadata={"of": "ann"})
            await handle.signal(answer["one"], "so")
            await handle.cancel("no more")

    run(main())
    assert shown(heard) == [
        ("RunStarted", "ask", "a", None),
        ("RunSignaled", "ask", "a", "answer[one]"),
        ("RunCanceled", "ask", "a", None),
    ]
    assert heard[0].time == BEGAN
    fields = {field for event in heard for field in msgspec.structs.asdict(event)}
    assert fields == {"workflow", "run_id", "time", "signal"}


@pytest.mark.rule("W-57")
def test_calls_that_fail_tell_nothing() -> None:
    heard: list[Any] = []

    async def main() -> None:
        async with engine_on(VirtualStore(), ask) as engine:
            engine.listen(ClientEvent)(heard.append)
            with pytest.raises(InvalidRequest):
                await engine.start(ask, 5, id="a")  # type: ignore[arg-type]
            nobody = engine.get(ask, "nobody")
            with pytest.raises(NotFound):
                await nobody.signal(answer, "so")
            with pytest.raises(NotFound):
                await nobody.cancel()
            handle = await engine.start(ask, "why?", id="a")
            await asyncio.sleep(1)
            assert shown(heard) == [("RunStarted", "ask", "a", None)]
            with pytest.raises(InvalidRequest):
                await handle.signal(answer, 5)  # type: ignore[arg-type]
            with pytest.raises(AlreadyStarted):
                await engine.start(ask, "why?", id="a")
            await engine.start(ask, "why?", id="a", if_exists="join")

    run(main())
    assert len(heard) == 1


@pytest.mark.rule("W-57")
def test_canceling_a_run_that_has_ended_is_told_and_its_end_is_not() -> None:
    heard: list[Any] = []
    ends: list[Any] = []

    async def main() -> None:
        async with engine_on(VirtualStore(), ask) as engine:
            engine.listen(RunCanceled)(heard.append)
            engine.listen(WorkflowFinished)(ends.append)
            handle = await engine.start(ask, "why?", id="a")
            await handle.signal(answer["one"], "so")
            await handle.result()
            await handle.status()
            assert heard == []
            await handle.cancel()

    run(main())
    assert shown(heard) == [("RunCanceled", "ask", "a", None)]
    assert [type(event).__name__ for event in ends] == ["WorkflowCompleted"]


def test_who_hears_of_runs_does_not_hear_of_calls() -> None:
    heard: list[Any] = []

    async def main() -> None:
        async with engine_on(VirtualStore(), ask) as engine:
            engine.listen(RunEvent)(heard.append)
            await engine.start(ask, "why?", id="a")

    run(main())
    assert not [event for event in heard if isinstance(event, ClientEvent)]
    assert heard


def test_a_client_tells_of_nothing_else() -> None:
    client = Client(MemoryStore())
    with pytest.raises(InvalidRequest) as refused:
        client.listen(WorkflowFinished)(print)
    assert str(refused.value) == (
        "a client tells of its own calls, and not of WorkflowFinished: listen to RunStarted, "
        "RunSignaled, RunCanceled or ClientEvent of perdure.feed, to a class of yours whose events "
        "it is to emit, or to others with an Engine"
    )


@pytest.mark.rule("W-57")
def test_a_listener_that_fails_or_takes_its_time_hinders_no_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[str] = []

    async def main() -> None:
        async with client_on(VirtualStore()) as client:

            @client.listen(RunStarted)
            def fails(event: RunStarted) -> None:
                raise OSError("no")

            @client.listen(RunStarted)
            async def slowly(event: RunStarted) -> None:
                await asyncio.sleep(2)
                heard.append(event.run_id)

            for id in "abc":
                await client.start(ask, "why?", id=id)
            assert asyncio.get_running_loop().time() == 0
            await asyncio.sleep(1)

    with caplog.at_level(logging.ERROR):
        run(main())
    assert heard == ["a", "b"], "a client that closes lets them hear for five seconds, no longer"
    assert len(caplog.records) == 3


def test_a_synchronous_client_tells_as_well() -> None:
    with blocking.Client(MemoryStore()) as client:
        heard = hear(client, RunSignaled)
        client.start(ask, "why?", id="a").signal(answer, "so")
    assert shown(heard) == [("RunSignaled", "ask", "a", "answer")]
