"""rehearse: run a document against mocks, by the real engine, in virtual time.

Retries, timeouts, waits, deadlines and what follows from them are the engine's own; only what the
world answers comes from the mocks, and time jumps. A wait of three days takes no time, and one
that nothing would ever end is told instead of waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from perdure.engine.secrets import Secrets
from perdure.flow.registry import Listed, Registry
from perdure.graph.definition import Graph
from perdure.model.driving import StartRequest
from perdure.testing.mocks import Mocks, MocksSource, mocks_for
from perdure.testing.rehearsal import Rehearsal
from perdure.testing.stage import RUN, Stage, moment_of, unsent
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
) -> Rehearsal:
    """Run the document against mocks, in virtual time.

    document: a Graph, the path of a file, or the document as a mapping. mocks: a mapping, or the
    path of a file of JSON or YAML; see docs/howto/rehearse.md. input, config, default: instead of
    the mocks' own. steps: the real steps, or modules of them; they are not called, but inputs must
    fit them and their retry policies and timeouts count.

    Raises InvalidRequest for mocks that do not fit the document, for a node that is reached and
    has no mock, and for an input that the document refuses; DefinitionError for the document.
    May be called with or without a running event loop.
    """
    graph = _graph(document)
    table = mocks_for(graph, mocks, input=input, config=config, default=default)
    real = Registry.of(steps).steps
    return GraphStage(graph, table, real).rehearsed()


def _graph(document: Graph | str | PathLike[str] | Mapping[str, Any]) -> Graph:
    if isinstance(document, Graph):
        return document
    if isinstance(document, Mapping):
        return Graph.load(document)
    return Graph.read(document)


class GraphStage(Stage):
    """One rehearsal of a document: the mocks answer for its nodes."""

    def __init__(self, graph: Graph, mocks: Mocks, real: Mapping[str, Any]) -> None:
        secrets = Secrets(lambda name: mocks.secrets.get(name, f"the secret {name}"))
        super().__init__(graph, mocks.sent, mocks.now, secrets=secrets)
        self._graph = graph
        self._mocks = mocks
        self._real = real
        answers = Answers(mocks, self._unmocked)
        named = [node.step for node in graph.plan.nodes.values() if node.step is not None]
        self.handlers = {
            "TASK": task_handler([*named, *mocks.by_step], real, answers),
            "HTTP": MockedHttp(answers, self.clock, secrets.redact),
        }

    def rehearsed(self) -> Rehearsal:
        """Play it."""
        mocks = self._mocks
        ended = self.on_a_loop_of_its_own(self._request())
        return Rehearsal(
            self._graph,
            ended.history,
            moment_of(mocks.now),
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
        mocks, nodes = self._mocks, self._graph.plan.nodes
        if not node:
            return self.refuse(why)
        missing = [
            id
            for id, one in nodes.items()
            if one.type in ("HTTP", "TASK")
            and id not in mocks.replies
            and one.step not in mocks.by_step
        ]
        called = f" (step {why})" if why and why != node else ""
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
            by_step = self._mocks.by_step.get(node.step or "")
            answers = len(self._mocks.replies.get(node.id) or by_step or ())
            if answers > had:
                real = node.type != "TASK" or node.retry is not None or node.step in self._real
                hint = "" if real else "; what its step says of retries counts with --app (steps=)"
                text = f"{node.id} took {had} of its {answers} answers"
                yield f"{text}: that was its last attempt{hint}"
