"""play: run a workflow in virtual time, its steps faked, by the real engine.

Retries, timeouts, sleeps, deadlines and signals are the engine's own; only what steps do comes from
the test, and a wait of three days takes no time. What was recorded is then replayed: code that does
not do the same again is told, as it would be in production, a restart later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import UNSET, Raw

from perdure.engine.handlers.port import Attempt
from perdure.engine.handlers.step import StepHandler
from perdure.engine.handlers.task import TaskHandler
from perdure.engine.runs.coding import recall
from perdure.engine.runs.journal import fetch_context, read_journal
from perdure.flow.binding import function_signature
from perdure.flow.calling import STEP_TYPE
from perdure.flow.step import Step
from perdure.flow.workflow import Workflow
from perdure.kernel.plan import PlannedNode
from perdure.model.definition import Definition
from perdure.model.driving import StartRequest
from perdure.model.duration_forms import Duration
from perdure.model.durations import SECOND, microseconds
from perdure.model.errors import InvalidRequest, NonDeterminism, PerdureError
from perdure.model.guesses import did_you_mean
from perdure.model.moments import moment
from perdure.model.step_context import StepContext
from perdure.testing.mocks import Sent as Letter
from perdure.testing.mocks import _now, workers_of
from perdure.testing.played import Played, PlayedCall, Status
from perdure.testing.replies import Reply, replies_of
from perdure.testing.script import Sent
from perdure.testing.stage import RUN, Ended, Stage, beside_any_loop, unsent
from perdure.testing.stand_ins import MOST_ATTEMPTS, MockedHttp, task_handler

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741

Steps = Mapping[Any, Any]
Signals = Sequence[tuple[Duration, Any, Any] | Sent[Any]]


def play(
    workflow: Workflow[I, O],
    input: Any = None,
    /,
    *,
    steps: Steps | None = None,
    default: Any = UNSET,
    signals: Signals = (),
    cancel: Duration | None = None,
    now: str | datetime | None = None,
    beside: Iterable[Definition[Any, Any]] = (),
) -> Played[O]:
    """Run the workflow in virtual time, to its end or to where nothing more would happen.

    input: what the function takes. steps: step (or its name) → what its calls answer: a value, an
    exception, a function that is called with the call's arguments, {"result": …, "delay": "3s"},
    or a list of these, one for each attempt made in the run, the last one repeated. default: of
    steps that are not named. signals: (time since the start, Signal, Channel or name, value), or a
    Sent. cancel: when the run is cancelled. now: when it begins. beside: workflows and graphs that
    it calls as children; their steps are faked too, and nodes of graphs by "graph.node".

    Raises InvalidRequest for an answer that is missing or cannot be used, and NonDeterminism when
    the code, run again from what was recorded, does something else. May be called with or without
    a running event loop.
    """
    if not isinstance(workflow, Workflow):
        raise InvalidRequest(f"{workflow!r} is no workflow: documents are rehearsed, see rehearse")
    sent = [_sent(one) for one in signals]
    if cancel is not None:
        sent.append(Letter(microseconds(cancel, "cancel"), None, "cancelled by the test"))
    others = list(beside)
    answers = _answers(steps or {}, workers_of(None, others))
    other = None if default is UNSET else replies_of(default, "default", http=False)

    def on_a_stage() -> Played[O]:
        stage = WorkflowStage(workflow, answers, other, sorted(sent, key=_at), now, others)
        stage.answer_for(steps or {}, others)
        return stage.played(input)

    return beside_any_loop(on_a_stage)


def _at(sent: Letter) -> int:
    return sent.at


def _sent(one: tuple[Duration, Any, Any] | Sent[Any]) -> Letter:
    if isinstance(one, Sent):
        return Letter(one.at, one.to.name, one.value)
    return _letter(*one)


def _letter(at: Duration, to: Any, value: Any = None) -> Letter:
    name = to if isinstance(to, str) else getattr(to, "name", None)
    if not isinstance(name, str):
        raise InvalidRequest(f"signal to {to!r}: give a Signal, a Channel or a name")
    return Letter(microseconds(at, "at"), name, value)


def _answers(steps: Steps, nodes: Mapping[str, PlannedNode]) -> dict[str, tuple[Reply, ...]]:
    answers: dict[str, tuple[Reply, ...]] = {}
    for key, mock in steps.items():
        name = key.name if isinstance(key, Step) else key
        if not isinstance(name, str):
            raise InvalidRequest(f"steps: {key!r} is neither a step nor the name of one")
        http = name in nodes and nodes[name].type == "HTTP"
        answers[name] = replies_of(mock, f"steps[{name}]", http=http)
    return answers


class FakedSteps(StepHandler):
    """Steps whose functions are the test's answers."""

    def __init__(self, stage: WorkflowStage) -> None:
        super().__init__(TaskHandler({}, 1))
        self._stage = stage
        self._made: dict[str, int] = {}

    async def run(self, attempt: Attempt, context: StepContext, /) -> Any:
        """See StepHandler.run; the arguments have to fit the real function."""
        step: Step[..., Any] = attempt.step
        args, kwargs = step.unpack(attempt.input)
        bound = function_signature(step.fn).bind(*args, **kwargs)
        stage = self._stage
        stage.called(step.name, attempt.node, attempt.number + 1, bound.arguments)
        made = self._made[step.name] = self._made.get(step.name, 0) + 1
        replies = await stage.replies(step.name, attempt.node)
        reply = replies[min(made, len(replies)) - 1]
        return await reply.given(*bound.args, **bound.kwargs)


class FakedNodes:
    """The nodes of graphs that are called: answered for by "graph.node", else by their steps (see
    stand_ins.Answering)."""

    def __init__(self, stage: WorkflowStage) -> None:
        self._stage = stage

    async def given(
        self, workflow: str, node: str, step: str, number: int, /, *args: Any, **kwargs: Any
    ) -> Any:
        """What the reply comes to, in its time."""
        reply = await self.to(workflow, node, step, number, *args)
        return await reply.given(*args, **kwargs)

    async def to(self, workflow: str, node: str, step: str, number: int, *args: Any) -> Reply:
        """The reply to attempt `number`, from 0."""
        stage, named = self._stage, f"{workflow}.{node}"
        stage.called(step or named, named, number + 1, {"input": args[0]} if args else {})
        replies = await stage.replies(step or named, named)
        return replies[min(number, len(replies) - 1)]


class WorkflowStage(Stage):
    """One run of a workflow whose steps are faked."""

    def __init__(
        self,
        workflow: Workflow[Any, Any],
        answers: Mapping[str, tuple[Reply, ...]],
        other: tuple[Reply, ...] | None,
        sent: Sequence[Letter],
        now: str | datetime | None,
        beside: Sequence[Definition[Any, Any]],
    ) -> None:
        self._begin: Final = _now(now, "play")
        super().__init__(workflow, sent, self._begin, beside=beside)
        self._workflow = workflow
        self._answers = answers
        self._other = other
        self._calls: list[PlayedCall] = []
        self.handlers = {STEP_TYPE: FakedSteps(self)}

    def answer_for(self, steps: Steps, beside: Sequence[Definition[Any, Any]]) -> None:
        """Let the nodes of graphs be answered for, too."""
        answers, nodes = FakedNodes(self), workers_of(None, beside).values()
        real = {key.name: key for key in steps if isinstance(key, Step)}
        named = [node.step for node in nodes if node.step is not None]
        self.handlers["TASK"] = task_handler([*named, *self._answers], real, answers)
        self.handlers["HTTP"] = MockedHttp(answers, self.clock, str)

    def called(self, step: str, node: str, attempt: int, arguments: Mapping[str, Any]) -> None:
        """An attempt of a step begins."""
        at = (self.clock.now() - self._begin) / SECOND
        self._calls.append(PlayedCall(step, node, attempt, at, dict(arguments)))
        if len(self._calls) > MOST_ATTEMPTS:
            self.refuse(f"more than {MOST_ATTEMPTS:,} attempts were made")

    async def replies(self, step: str, node: str) -> tuple[Reply, ...]:
        """What answers for a step; a missing answer ends it all."""
        found = self._answers.get(node) or self._answers.get(step) or self._other
        if found is not None:
            return found
        hint = did_you_mean(step, list(self._answers)) if self._answers else "there is none"
        self.refuse(
            f"step {step} is called ({node}) and has no answer: add it to steps=, or give a "
            f"default= ({hint})"
        )
        return await asyncio.Future()  # until it is over

    def played(self, input: Any) -> Played[Any]:
        """Play it, and replay what was recorded."""
        value = None if input is None else Raw(self.codec.encode(input))
        self._workflow.check_input(value)
        ended = self.on_a_loop_of_its_own(StartRequest(self._workflow, RUN, value))
        return self._outcome(ended)

    async def after(self, ended: Ended) -> None:
        """Run the code again from what was recorded."""
        if ended.stalled and ended.loaded.run.status == "running":
            return  # it could not go on, which is told
        recorded, key = read_journal(ended.loaded), ended.loaded.run.key

        async def one(run: bytes, place: tuple[int, int]) -> bytes:
            return (await self.store.payloads(run, [place]))[0]

        await fetch_context(one, recorded, key)
        machine = self._workflow.machine(recorded.run, self._shell.deps)

        try:
            await recall(
                machine, recorded.transitions, recorded.outputs, partial(self.store.payloads, key)
            )
        except PerdureError as error:
            raise NonDeterminism(f"{self._workflow.name}, replayed: {error}") from None
        finally:
            machine.close()

    def _outcome(self, ended: Ended) -> Played[Any]:
        end = next((r for r in reversed(ended.history) if r["do"] == "FinishRun"), None)
        seconds = 0.0
        if ended.history:
            last = ended.history[-1]["time"]
            seconds = (last - moment(self._begin)).total_seconds()
        row = ended.loaded.run
        open_: Status = "stalled" if row.stalled else "waiting"
        status: Status = open_ if row.status == "running" else row.status
        output = None
        if end is not None and status == "completed":
            output = self._workflow.read_output(Raw(self.codec.encode(end.get("output"))))
        return Played(
            name=self._workflow.name,
            status=status,
            output=output,
            failure=None if end is None else end.get("failure"),
            reason=ended.reason,
            seconds=seconds,
            calls=tuple(self._calls),
            notes=tuple(unsent(ended.history, self._sent, self._begin)),
            history=tuple(ended.history),
        )
