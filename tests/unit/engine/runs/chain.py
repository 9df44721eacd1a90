"""A workflow that calls one step after another, and how its steps were made."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from perdure.engine.runs.at_once import AtOnce
from perdure.flow.context import Context
from perdure.flow.step import step
from perdure.flow.workflow import workflow
from perdure.kernel.events import NodeCompleted
from perdure.model.policy import Retry

#: The steps that were begun, by number, in order.
begun: list[int] = []
#: What the step of a number does, where it does anything.
deeds: dict[int, Callable[[], Any]] = {}
#: How many steps ended in the decision they follow from ("completed"), went on otherwise (True), or
#: did not begin there (False).
at_once: Counter[Any] = Counter()


@step(retry=Retry(2, initial=1))
async def work(number: int) -> int:
    begun.append(number)
    if number in deeds:
        made = deeds[number]()
        if made is not None:
            await made
    return number


@workflow(max_duration=None)
async def chain(ctx: Context, count: int) -> int:
    return sum([await work(number) for number in range(count)])


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin anew, and count how steps are made."""
    begun.clear()
    deeds.clear()
    at_once.clear()
    attempt = AtOnce.attempt

    def counts(self: AtOnce, *args: Any) -> Any:
        made = attempt(self, *args)
        at_once["completed" if type(made) is NodeCompleted else made] += 1
        return made

    monkeypatch.setattr(AtOnce, "attempt", counts)


def blocks(seconds: float) -> Callable[[], None]:
    """A deed that keeps the loop for so long."""

    def blocking() -> None:
        loop: Any = asyncio.get_running_loop()
        loop._virtual += seconds

    return blocking
