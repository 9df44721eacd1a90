"""Graphs that call their steps as these cannot be called: no new run begins, the others go on."""

from __future__ import annotations

import logging

import pytest

from perdure.flow.step import step
from perdure.model.errors import AlreadyStarted, DefinitionError, RunFailed
from tests.virtual.engines import client_on, engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


@step
async def first() -> str:
    return "done"


@step
async def greet(name: str) -> str:
    return name


GOOD = graph("good", [task("a", "first")])
WRONG = graph("wrong", [task("a", "first"), task("b", "greet", {"nmae": "ann"})])
TOLD = 'step greet has no parameter "nmae"; did you mean "name"'


def test_a_call_that_cannot_work_refuses_every_new_run() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), WRONG, GOOD, first, greet) as engine:
            with pytest.raises(DefinitionError, match=TOLD):
                await engine.start(WRONG, id="1")
            assert await engine.run(GOOD, id="1") == {"a": "done"}
            assert [info async for info in engine.runs(workflow="wrong")] == []

    run(main())


def test_it_refuses_a_graph_that_was_not_listed_too() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), first, greet) as engine:
            with pytest.raises(DefinitionError, match=TOLD):
                await engine.start(WRONG, id="1")

    run(main())


def test_the_engine_opens_with_a_warning_and_goes_on_with_runs_that_are_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            await client.start(WRONG, id="1")
        with caplog.at_level(logging.WARNING, "perdure"):
            async with engine_on(store, WRONG, first, greet) as engine:
                with pytest.raises(RunFailed, match="has no parameter nmae"):
                    await engine.get(WRONG, "1").result()
                with pytest.raises(AlreadyStarted):
                    await engine.start(WRONG, id="1")

    run(main())
    (warning,) = [r.getMessage() for r in caplog.records if "cannot be called" in r.getMessage()]
    assert TOLD in warning
    assert "runs that are there go on" in warning


def test_joining_with_another_input_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), GOOD, first) as engine:
            await engine.run(GOOD, {"n": 1}, id="1")
            for input in ({"n": 1}, None):
                await engine.run(GOOD, input, id="1")
            assert caplog.messages == []
            await engine.run(GOOD, {"n": 2}, idempotency_key="1")

    run(main())
    assert caplog.messages == ["good/1 was started with another input and keeps that one"]
