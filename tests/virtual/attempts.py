"""Attempts carried out by a Dispatcher alone, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from types import coroutine
from typing import Any

import msgspec
from msgspec import Raw

from perdure.codec.values import JsonCodec
from perdure.engine.attempts.dispatcher import Dispatcher
from perdure.engine.attempts.orders import Order
from perdure.engine.attempts.resources import Resources
from perdure.engine.attempts.secrets import Secrets
from perdure.engine.attempts.stepping import OVER, Waiting
from perdure.engine.attempts.timeouts import Timeouts
from perdure.engine.handlers.task import TaskHandler
from perdure.expr import reveal
from perdure.flow.step import Step
from perdure.kernel.events import NodeCompleted, NodeFailed
from perdure.model.failure import FailureRecord
from tests.virtual.loop import VirtualClock


@coroutine
def carried_out(made: Any) -> Generator[Any, Any, Any]:
    """How an attempt ended that was begun in the calling task."""
    if not isinstance(made, Waiting):
        return made
    current: Any = asyncio.current_task()
    made.task = current
    given = made.awaited
    while given is not OVER:
        try:
            value = yield given
        except GeneratorExit:
            made.close()
            raise
        except BaseException as error:
            given = made.throw(error)
        else:
            given = made.send(value)
    return made.report


class Desk:
    """A dispatcher for these steps."""

    def __init__(
        self, *steps: Step[..., Any], secrets: Any = None, resources: tuple[object, ...] = ()
    ) -> None:
        secret = Secrets(secrets)
        self.timeouts = Timeouts()
        self.dispatcher = Dispatcher(
            {"TASK": TaskHandler({step.name: step for step in steps})},
            JsonCodec(),
            VirtualClock(),
            self.timeouts,
            Resources(resources),
            lambda value, at: reveal(value, at, secret),
            secret.redact,
        )

    async def report(
        self, step: Step[..., Any], *input: Any, number: int = 0, limit: int | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Any:  # fmt: skip
        """What an attempt of the step comes to."""
        spec: dict[str, Any] = {"step": step.name}
        if input:
            spec["input"] = input[0]
        order = Order(
            "order", "o-1", "ship", "TASK", "t1", number, None, limit, None, None,
            None, Raw(msgspec.json.encode(spec)), secrets or {},
        )  # fmt: skip
        return await carried_out(self.dispatcher.begin(order))

    async def output(self, step: Step[..., Any], *input: Any, **rest: Any) -> Any:
        """The value of an attempt that ends well."""
        report = await self.report(step, *input, **rest)
        assert isinstance(report, NodeCompleted), report
        return msgspec.json.decode(report.output)

    async def failure(self, step: Step[..., Any], *input: Any, **rest: Any) -> FailureRecord:
        """The failure of an attempt that does not; it leaves nothing behind in the task."""
        report = await self.report(step, *input, **rest)
        assert isinstance(report, NodeFailed), report
        assert (report.task, report.node, report.attempt) == ("t1", "ship", rest.get("number", 0))
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        return report.failure
