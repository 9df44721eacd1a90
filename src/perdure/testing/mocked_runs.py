"""Mocked runs: what a rehearsed document's CHILD nodes ask for, where the run itself is not given.

Each is a run of its own, of a workflow that does nothing but answer from the table: that it is
made or joined, ends with who asked for it, and takes its time, is the engine's own doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from perdure.engine.handlers.port import Attempt
from perdure.engine.handlers.step import StepHandler
from perdure.engine.handlers.task import TaskHandler
from perdure.engine.runs.live_run import LiveRun
from perdure.flow.binding import function_signature
from perdure.flow.context import Context
from perdure.flow.step import Step, step
from perdure.flow.workflow import Workflow, workflow
from perdure.model.graph import CHILD
from perdure.model.step_context import StepContext, current_step
from perdure.testing.mocks import Mocks
from perdure.testing.stand_ins import Answers


class MockedRuns:
    """`live`: the runs that are in memory, among them who asks."""

    def __init__(self, answers: Answers, live: Callable[[], Iterable[LiveRun]]) -> None:
        self._answers = answers
        self._live = live

        @step(timeout=None)
        async def answer(input: Any) -> Any:
            return await self._asked(input)

        self._answer = answer

    def definition(self, name: str) -> Workflow[Any, Any]:
        """A workflow of this name that answers."""
        answer: Any = self._answer

        @workflow(name=name, max_duration=None)
        async def stand_in(ctx: Context, input: Any = None) -> Any:
            return await answer(input)

        return stand_in

    def is_answer(self, called: Step[..., Any]) -> bool:
        """Whether it is the step by which they answer."""
        return called is self._answer

    async def _asked(self, input: Any) -> Any:
        attempt = current_step()
        workflow, node, number = self._asker(attempt.workflow, attempt.run_id)
        return await self._answers.given(workflow, node, attempt.workflow, number, input)

    def _asker(self, definition: str, id: str) -> tuple[str, str, int]:
        """The node that asks for this run, its workflow, and its attempt from 0."""
        for live in self._live():
            for node, state in live.run.nodes.items():
                child = state.child
                if child is not None and (child.definition, child.id) == (definition, id):
                    return live.workflow, node, state.attempt
        return definition, "", 0


class MockedCalls(StepHandler):
    """The steps that workflows call, answered by name; the arguments have to fit the function."""

    def __init__(self, answers: Answers, runs: MockedRuns) -> None:
        super().__init__(TaskHandler({}, 1))
        self._answers = answers
        self._runs = runs

    async def run(self, attempt: Attempt, context: StepContext, /) -> Any:
        """See StepHandler.run."""
        called: Step[..., Any] = attempt.step
        if self._runs.is_answer(called):
            return await super().run(attempt, context)
        args, kwargs = called.unpack(attempt.input)
        bound = function_signature(called.fn).bind(*args, **kwargs)
        return await self._answers.given(
            attempt.workflow, attempt.node, called.name, attempt.number, *bound.args, **bound.kwargs
        )


def mocked_names(nodes: Iterable[Any], mocks: Mocks) -> set[str]:
    """The workflows whose runs are answered for: those a mock is given of, by name or at a node
    that asks for one."""
    asked = {node.id: node.workflow for node in nodes if node.type == CHILD}
    at_nodes = {name for id, name in asked.items() if id in mocks.replies and name is not None}
    return at_nodes | (set(asked.values()) & mocks.by_step.keys())
