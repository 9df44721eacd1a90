"""Stand-ins: the handlers of a rehearsal. The engine is real; what the world answers is not.

A mocked step keeps what its real one says of itself, where it is known: the input has to fit the
function, its own retry policy and timeout count. A mocked request is read, checked and judged as
a real one; only its answer comes from the table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn, Protocol

from msgspec import UNSET

from perdure.engine.clock import Clock
from perdure.engine.handlers.http import HttpHandler, joined, limit_of, unexpected_status
from perdure.engine.handlers.http_retry import retry_after
from perdure.engine.handlers.http_spec import read_spec, read_timeout
from perdure.engine.handlers.port import Attempt
from perdure.engine.handlers.task import RunnableStep, TaskHandler
from perdure.model.durations import SECOND
from perdure.model.errors import Failure
from perdure.model.policy import Retry
from perdure.model.step_context import StepContext, current_step
from perdure.testing.mocks import Mocks
from perdure.testing.replies import Reply

#: Attempts in all after which a rehearsal is given up.
MOST_ATTEMPTS: Final = 10_000


class Answers:
    """Which reply an attempt gets. `graph`: whose nodes are mocked by their ids; those of other
    runs by "workflow.node". `refuse` is told of one that has none, and ends it all."""

    def __init__(self, graph: str, mocks: Mocks, refuse: Callable[[str, str], None]) -> None:
        self._graph = graph
        self._mocks = mocks
        self._refuse = refuse
        self._count = 0

    async def given(
        self, workflow: str, node: str, step: str, number: int, /, *args: Any, **kwargs: Any
    ) -> Any:
        """What the reply comes to, in its time: a result, or what is raised. `args`, `kwargs`: for
        a function of the mocks'."""
        reply = await self.to(workflow, node, step, number)
        return await reply.given(*args, **kwargs)

    async def to(self, workflow: str, node: str, step: str, number: int) -> Reply:
        """The reply to attempt `number`, from 0; its delay has not passed yet."""
        if workflow != self._graph:
            node = f"{workflow}.{node}"
        self._count += 1
        if self._count > MOST_ATTEMPTS:
            await self._give_up("", f"more than {MOST_ATTEMPTS:,} attempts were made")
        mocks = self._mocks
        replies = mocks.replies.get(node) or mocks.by_step.get(step) or mocks.default
        if replies is None:
            await self._give_up(node, step)
        return replies[min(number, len(replies) - 1)]

    async def _give_up(self, node: str, why: str) -> NoReturn:
        self._refuse(node, why)
        await asyncio.Event().wait()  # until the rehearsal is over
        raise AssertionError("unreachable")


class Answering(Protocol):
    """Who answers for attempts; see Answers."""

    async def given(
        self, workflow: str, node: str, step: str, number: int, /, *args: Any, **kwargs: Any
    ) -> Any:
        """See Answers.given."""

    async def to(self, workflow: str, node: str, step: str, number: int) -> Reply:
        """See Answers.to."""


class MockedStep:
    """A step whose function is a reply of the table (see TaskHandler's RunnableStep)."""

    is_async = True

    def __init__(self, name: str, real: RunnableStep | None, answers: Answering) -> None:
        self.name = name
        self.retry = Retry(1) if real is None else real.retry
        self.timeout_us = 60 * SECOND if real is None else real.timeout_us
        self._real = real
        self._answers = answers

    @property
    def fn(self) -> Callable[[Any], Any]:
        """Answers for the attempt that it is called in."""
        return self._answer

    def bind(self, input: Any = UNSET, /) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The input as it is, once the real step has taken it. Raises InvalidRequest."""
        if self._real is not None:
            self._real.bind(input)
        return (None if input is UNSET else input,), {}

    async def _answer(self, input: Any) -> Any:
        attempt = current_step()
        return await self._answers.given(
            attempt.workflow, attempt.node, self.name, attempt.attempt - 1, input
        )


class MockedHttp(HttpHandler):
    """Reads requests as HttpHandler does and sends none."""

    def __init__(self, answers: Answering, clock: Clock, redact: Callable[[str], str]) -> None:
        super().__init__(None, redact)
        self._answers = answers
        self._clock = clock

    async def run(self, attempt: Attempt, context: StepContext, /) -> dict[str, Any]:
        """See HttpHandler.run."""
        read_timeout(attempt.input)
        request = read_spec(attempt.input, context.idempotency_key)
        reply = await self._answers.to(attempt.workflow, attempt.node, "", attempt.number)
        limit = limit_of(attempt)
        if limit and reply.delay > limit:
            await asyncio.sleep(limit / SECOND)
            took = f"{request.shown}: took over {limit / SECOND:g} s"
            raise Failure(took, kind="http-timeout")
        said = await reply.given(attempt.input)
        status, headers, body = reply.response or (200, {}, said)
        if status not in request.expect:
            titled = {key.title(): value for key, value in headers.items()}
            failure = unexpected_status(request, status, titled, "" if body is None else str(body))
            failure.retry_after = retry_after(titled, self._clock.now())
            raise failure
        return {"status": status, "headers": joined(headers.items()), "body": body}


def task_handler(
    names: Iterable[str], real: Mapping[str, RunnableStep], answers: Answering
) -> TaskHandler:
    """The real handler, of mocked steps."""
    steps: dict[str, RunnableStep] = {
        name: MockedStep(name, real.get(name), answers) for name in (*names, *real)
    }
    return TaskHandler(steps, 1)
