"""Inputs that a document's schema refuses: nothing begins, and a retry takes none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from perdure.flow.step import step
from perdure.graph import Graph
from perdure.model.errors import InvalidRequest, NotFound, RunFailed
from tests.virtual.engines import client_on, engine_on, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


@step(retry=1)
async def work(value: str) -> str:
    if value == "bad":
        raise ValueError("no")
    return value


SCHEMA = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}, "more": {"default": 3}},
    "additionalProperties": False,
}
DOCUMENT = {
    "name": "checked",
    "input": SCHEMA,
    "nodes": [task("a", "work", {"value": "{{input.text}}"})],
    "output": "{{input}}",
}
CHECKED = Graph.load(DOCUMENT)
WRONG = "the input of checked does not fit its schema"


@pytest.mark.parametrize("opened", [client_on, lambda store: engine_on(store, work)])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": 5}, f"{WRONG}: input.text must be text, and is a whole number"),
        ({"txt": "x"}, f'{WRONG}:\n  input: "text" is missing\n  input: there is no field "txt"'),
        (None, f"{WRONG}: input must be an object, and none was given"),
        ("text", f"{WRONG}: input must be an object, and is text"),
    ],
)
def test_a_start_with_an_input_that_does_not_fit_writes_nothing(
    opened: Callable[..., Any], given: object, message: str
) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with opened(store) as client:
            with pytest.raises(InvalidRequest) as caught:
                await client.start(CHECKED, given, id="1")
            assert str(caught.value).startswith(message)
            with pytest.raises(NotFound):
                await client.get("checked", "1").describe()

    run(main())


def test_a_workflow_started_by_its_name_is_checked_too() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            await client.start(CHECKED, {"text": "x"}, id="1")
            with pytest.raises(InvalidRequest, match=WRONG):
                await client.start("checked", {"text": ""}, id="2")

    run(main())


def test_the_input_stays_as_it_was_given() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), CHECKED, work) as engine:
            assert await engine.run(CHECKED, {"text": "x"}, id="1") == {"text": "x"}

    run(main())


def test_a_retry_with_an_input_that_does_not_fit_leaves_the_run_as_it_is() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), CHECKED, work) as engine:
            started = await engine.start(CHECKED, {"text": "bad"}, id="1")
            with pytest.raises(RunFailed, match="no"):
                await started.result()
            before = [record async for record in started.history()]
            with pytest.raises(InvalidRequest, match=WRONG):
                await started.retry(failed=True, input={"text": 1})
            assert [record async for record in started.history()] == before
            assert await started.status() == "failed"
            await started.retry(failed=True, input={"text": "good"})
            assert await started.result() == {"text": "good"}

    run(main())
