"""rehearse: run a document against mocks, by the real engine, in virtual time.

Retries, timeouts, waits, deadlines and what follows from them are the engine's own; only what the
world answers comes from the mocks, and time jumps. A wait of three days takes no time, and one
that nothing would ever end is told instead of waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from perdure.engine.attempts.secrets import Secrets
from perdure.engine.runs.live_run import LiveRun
from perdure.engine.runs.starting import to_publish
from perdure.flow.calling import STEP_TYPE
from perdure.flow.registry import Listed, Registry
from perdure.graph.definition import Graph
from perdure.model.definition import Definition
from perdure.model.driving import StartRequest
from perdure.model.graph import CHILD
from perdure.model.moments import moment
from perdure.stores.rows import StoredDefinition
from perdure.testing.mocked_runs import MockedCalls, MockedRuns, mocked_names
from perdure.testing.mocks import Mocks, MocksSource, mocks_for, workers_of
from perdure.testing.rehearsal import Rehearsal
from perdure.testing.stage import RUN, Stage, unsent
from perdure.testing.stand_ins import Answers, MockedHttp, task_handler


def rehearse(
    document: Graph | str | PathLike[str] | Mapping[str, Any],
    mocks: MocksSource | None = None,
    /,
    *,
    input: Any = UNSET,
    config: Mapping[str, Any] | UnsetType = UNSET,
    default: Any = UNSET,
    steps: Iterable[Listed] = (),
    beside: Iterable[Definition[Any, Any]] = (),
) -> Rehearsal:
    """Run the document against mocks, in virtual time.

    document: a Graph, the path of a file, or the document as a mapping. mocks: a mapping, or the
    path of a file of JSON or YAML; see docs/howto/rehearse.md. input, config, default: instead of
    the mocks' own. steps: the real steps, or modules of them; they are not called, but inputs must
    fit them and their retry policies and timeouts count. beside: workflows and graphs that CHILD
    nodes ask for; those that no mock answers for are run, against the same mocks.

    Raises InvalidRequest for mocks that do not fit the document, for a node that is reached and
    has no mock, and for an input that the document refuses; DefinitionError for the document.
    May be called with or without a running event loop.
    """
    graph = _graph(document)
    others = [one for one in beside if one.name != graph.name]
    table = mocks_for(graph, mocks, others, input=input, config=config, default=default)
    real = Registry.of(steps).steps
    return GraphStage(graph, table, real, others).rehearsed()


def _graph(document: Graph | str | PathLike[str] | Mapping[str, Any]) -> Graph:
    if isinstance(document, Graph):
        return document
    if isinstance(document, Mapping):
        return Graph.load(document)
    return Graph.read(document)


class GraphStage(Stage):
    """One rehearsal of a document: the mocks answer for its nodes."""

    def __init__(
        self,
        graph: Graph,
        mocks: Mocks,
        real: Mapping[str, Any],
        beside: Sequence[Definition[Any, Any]],
    ) -> None:
        secrets = Secrets(lambda name: mocks.secrets.get(name, f"the secret {name}"))
        mocked = mocked_names(graph.plan.nodes.values(), mocks)
        run = [one for one in beside if one.name not in mocked]
        super().__init__(graph, mocks.sent, mocks.now, secrets=secrets, beside=run)
        self._graph = graph
        self._mocks = mocks
        self._real = real
        self._workers = workers_of(graph, run)
        answers = Answers(graph.name, mocks, self._unmocked)
        self._runs = MockedRuns(answers, self._in_memory)
        self.store.unpublished = self._unpublished
        named = [node.step for node in self._workers.values() if node.step is not None]
        self.handlers = {
            "TASK": task_handler([*named, *mocks.by_step], real, answers),
            "HTTP": MockedHttp(answers, self.clock, secrets.redact),
            STEP_TYPE: MockedCalls(answers, self._runs),
        }

    def _in_memory(self) -> Iterable[LiveRun]:
        return self._shell.live.values()

    def _unpublished(self, name: str) -> StoredDefinition:
        return to_publish(self._runs.definition(name), self.clock.now())

    def rebuilt(self, stored: StoredDefinition) -> Definition[Any, Any]:
        """A run that is asked for and was not given: it answers from the mocks."""
        made = self._runs.definition(stored.name)
        self._shell.served.add(made)
        return made

    def rehearsed(self) -> Rehearsal:
        """Play it."""
        mocks = self._mocks
        ended = self.on_a_loop_of_its_own(self._request())
        return Rehearsal(
            self._graph,
            ended.history,
            moment(mocks.now),
            reason=ended.reason,
            stalled=ended.stalled,
            notes=[
                *unsent(ended.history, mocks.sent, mocks.now),
                *self._left_over(ended.history),
            ],
            expected=mocks.expect,
        )

    def _request(self) -> StartRequest:
        mocks, encode = self._mocks, self.codec.encode
        return StartRequest(
            self._graph,
            RUN,
            None if mocks.input is None else Raw(encode(mocks.input)),
            None if mocks.config is None else Raw(encode(mocks.config)),
            start_node=mocks.start_node,
        )

    def _unmocked(self, node: str, why: str) -> None:
        """An attempt has no answer: end the rehearsal, saying what is missing."""
        mocks = self._mocks
        if not node:
            return self.refuse(why)
        missing = [
            id
            for id, one in self._workers.items()
            if id not in mocks.replies and not {one.step, one.workflow} & mocks.by_step.keys()
        ]
        missing = missing or [why]  # called by code
        asked = self._workers.get(node)
        what = "workflow" if asked is not None and asked.type == CHILD else "step"
        called = f" ({what} {why})" if why and why != node else ""
        return self.refuse(
            f'node {node}{called} was reached and has no mock: add it under "steps", or say '
            f"a default; without a mock are: {', '.join(missing)}"
        )

    def _left_over(self, history: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Answers for attempts that a failed node did not have any more."""
        for record in history:
            if record["do"] != "FailTask":
                continue
            node, had = self._graph.plan.nodes[record["node"]], record["attempt"]
            by_step = self._mocks.by_step.get(node.step or node.workflow or "")
            answers = len(self._mocks.replies.get(node.id) or by_step or ())
            if answers > had:
                real = node.type != "TASK" or node.retry is not None or node.step in self._real
                hint = "" if real else "; what its step says of retries counts with --app (steps=)"
                text = f"{node.id} took {had} of its {answers} answers"
                yield f"{text}: that was its last attempt{hint}"
