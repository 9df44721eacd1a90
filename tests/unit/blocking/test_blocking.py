"""The synchronous classes: the same answers, types and errors, without await."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from perdure import (
    AlreadyStarted,
    Context,
    DefinitionError,
    InvalidRequest,
    NotFound,
    PerdureError,
    RunFailed,
    Signal,
    TimedOut,
    step,
    workflow,
)
from perdure.blocking import Client, Engine, Run
from perdure.feed import WorkflowCompleted


@dataclass
class Order:
    id: str
    total: int


confirmed = Signal("confirmed", Order)


@step
async def double(n: int) -> int:
    return 2 * n


@workflow(max_duration="1h")
async def doubled(ctx: Context, n: int) -> int:
    return await double(n)


@workflow(max_duration="1h")
async def told(ctx: Context) -> Order:
    return await ctx.wait(confirmed)


@workflow(max_duration="1h")
async def broken(ctx: Context) -> None:
    raise ValueError("broken")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine("memory:", [doubled, told, broken]) as engine:
        yield engine


def test_a_run_is_started_waited_for_and_asked_about(engine: Engine) -> None:
    run = engine.start(doubled, 3, id="1", metadata={"a": "b"})
    assert (type(run), run.id, run.workflow) == (Run, "1", "doubled")
    assert run.result(timeout=10) == 6
    assert run.status() == "completed"
    assert dict(run.describe().metadata) == {"a": "b"}
    assert engine.run(doubled, 4) == 8
    assert engine.get(doubled, "1").result() == 6
    assert engine.get("doubled", "1").result() == 6


def test_signals_are_typed_and_cancel_ends(engine: Engine) -> None:
    run = engine.start(told, id="1")
    with pytest.raises(TimedOut):
        run.result(timeout=0.01)
    wrong: Any = {"id": "1"}
    with pytest.raises(InvalidRequest, match="signal confirmed"):
        run.signal(confirmed, wrong)
    run.signal(confirmed, Order("1", 5), dedupe_key="k")
    assert run.result() == Order("1", 5)
    other = engine.start(told, id="2")
    other.cancel("enough")
    assert other.status() in ("running", "canceled")


def test_handles_in_errors_are_synchronous_too(engine: Engine) -> None:
    engine.start(doubled, 3, id="1")
    with pytest.raises(AlreadyStarted) as caught:
        engine.start(doubled, 3, id="1")
    assert caught.value.run.result() == 6
    with pytest.raises(RunFailed, match="broken") as failed:
        engine.run(broken, id="2")
    assert failed.value.run.status() == "failed"
    assert type(failed.value.run) is Run


def test_listings_are_iterated_as_far_as_one_likes(engine: Engine) -> None:
    for n in range(3):
        engine.run(doubled, n, id=str(n))
    assert [info.id for info in engine.runs(workflow=doubled)] == ["2", "1", "0"]
    runs = engine.runs()
    assert next(runs).id == "2"
    runs.close()  # type: ignore[attr-defined]
    history = engine.get(doubled, "1").history()
    assert "seq" in next(history)
    assert len(list(history)) > 1


def test_listeners_hear_of_what_ended(engine: Engine) -> None:
    heard = threading.Event()

    @engine.listen(WorkflowCompleted)
    def hear(event: WorkflowCompleted) -> None:
        heard.set()

    engine.run(doubled, 1)
    assert heard.wait(10)


@pytest.mark.rule("W-26", "W-17")
def test_many_threads_share_one_client(engine: Engine) -> None:
    def start(n: int) -> str:
        try:
            engine.start(doubled, n, id=str(n % 10))
        except AlreadyStarted as error:
            return str(error.run.result())
        return "won"

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(start, range(40)))
    assert outcomes.count("won") == 10
    assert len(list(engine.runs())) == 10


def test_a_def_step_may_use_it_and_code_on_its_loop_is_told_not_to(engine: Engine) -> None:
    @step
    def inner(n: int) -> int:
        return engine.run(doubled, n)

    @step
    async def wrong(n: int) -> int:
        return engine.run(doubled, n)

    @workflow(max_duration="1h")
    async def outer(ctx: Context, n: int) -> int:
        return await inner(n)

    @workflow(max_duration="1h")
    async def refused(ctx: Context, n: int) -> int:
        return await wrong(n)

    assert engine.run(outer, 3) == 6
    with pytest.raises(RunFailed, match="its own event loop") as caught:
        engine.run(refused, 3)
    assert caught.value.kind == "PerdureError"


def test_one_that_is_closed_says_so_and_mistakes_are_told_where_they_are_made() -> None:
    client = Client("memory:")
    with pytest.raises(NotFound):
        client.get("doubled", "1").status()
    client.close()
    with pytest.raises(PerdureError, match="closed"):
        client.get("doubled", "1").status()
    wrong: Any = print
    with pytest.raises(DefinitionError, match="neither a step nor a workflow"):
        Engine("memory:", [wrong])


@workflow(max_duration="1h")
async def leaves(ctx: Context) -> None:
    await double(1)
    raise SystemExit(5)


@step
async def leaving() -> None:
    raise SystemExit(5)


@workflow(max_duration="1h")
async def calls_leaving(ctx: Context) -> None:
    await leaving()


@pytest.mark.rule("D-29")
@pytest.mark.parametrize("definition", [leaves, calls_leaving])
def test_code_that_ends_the_process_ends_it_from_where_it_is_waited_for(definition: Any) -> None:
    with pytest.raises(SystemExit) as ended, Engine("memory://", [definition, doubled]) as engine:
        engine.run(definition)
    assert ended.value.code == 5
    with Engine("memory://", [doubled]) as engine:
        assert engine.run(doubled, 2) == 4
