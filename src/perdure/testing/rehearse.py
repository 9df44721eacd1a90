"""rehearse: run a document against mocks, by the real engine, in virtual time.

Retries, timeouts, waits, deadlines and what follows from them are the engine's own; only what the
world answers comes from the mocks, and time jumps. A wait of three days takes no time, and one
that nothing would ever end is told instead of waited for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from perdure.client.history import told
from perdure.client.messages import signal_message
from perdure.codec.values import JsonCodec
from perdure.engine.handlers.port import Handler
from perdure.engine.secrets import Secrets
from perdure.engine.shell import Shell
from perdure.engine.starting import StartRequest
from perdure.expr import reveal
from perdure.flow.registry import Listed, Registry
from perdure.graph.definition import Graph
from perdure.model.definition import Definition
from perdure.model.durations import SECOND
from perdure.model.errors import InvalidRequest, NotFound
from perdure.stores.memory import MemoryStore
from perdure.stores.port import NEVER, Message, StoredDefinition, WorkerInfo
from perdure.testing.mocks import Mocks, MocksSource, Sent, mocks_for
from perdure.testing.rehearsal import Rehearsal
from perdure.testing.stand_ins import Answers, MockedHttp, task_handler
from perdure.testing.virtual import VirtualClock, VirtualLoop

#: Virtual seconds after which nothing is waited for any more: a hundred years.
HORIZON: Final = 100 * 365.25 * 86_400
#: Every rehearsal's run has this id, and the same chance.
RUN: Final = "rehearsal"
SEED: Final = 1

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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
    stage = Stage(graph, table, real)

    def play() -> Rehearsal:
        loop = VirtualLoop()
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(stage.play(loop))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return play()
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(play).result()


def _graph(document: Graph | str | PathLike[str] | Mapping[str, Any]) -> Graph:
    if isinstance(document, Graph):
        return document
    if isinstance(document, Mapping):
        return Graph.load(document)
    return Graph.read(document)


class OwnStore(MemoryStore):
    """A memory store in virtual time, whose one worker lives for ever."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def now(self) -> int:
        """See Store.now."""
        return self._clock.now()

    async def register(self, worker: WorkerInfo) -> int:
        """See Store.register."""
        freed = await super().register(worker)
        self._leases[worker.id] = NEVER
        return freed


class Stage:
    """One rehearsal: the engine, the mocks, and who sends the signals."""

    def __init__(self, graph: Graph, mocks: Mocks, real: Mapping[str, Any]) -> None:
        self._graph = graph
        self._mocks = mocks
        self._real = real
        self._notes: list[str] = []
        self._refusal = ""
        self._over = asyncio.Event()
        self._codec = JsonCodec()
        clock = VirtualClock(begin=mocks.now, longest_sleep=float("inf"))
        self._store = OwnStore(clock)
        self._shell = self._engine(clock)
        self._key = b""

    async def play(self, loop: VirtualLoop) -> Rehearsal:
        """Run it to its end, or to where nothing more would happen."""
        shell = self._shell
        await shell.open()
        try:
            self._key = (await shell.start(self._request())).key
            senders = [shell.spawn(self._send(sent)) for sent in self._mocks.sent]
            loop.before_jump = self._look
            await self._over.wait()
            loop.before_jump = None
            for sender in senders:
                sender.cancel()
            if self._refusal:
                raise InvalidRequest(self._refusal)
            return await self._outcome()
        finally:
            loop.before_jump = None
            await shell.close(0)

    def _engine(self, clock: VirtualClock) -> Shell:
        secrets = Secrets(lambda name: self._mocks.secrets.get(name, f"the secret {name}"))
        answers = Answers(self._mocks, self._unmocked)
        nodes = self._graph.plan.nodes.values()
        named = [node.step for node in nodes if node.step is not None]
        handlers: dict[str, Handler] = {
            "TASK": task_handler([*named, *self._mocks.by_step], self._real, answers),
            "HTTP": MockedHttp(answers, clock, secrets.redact),
        }
        shell = Shell(
            self._store, clock, self._codec, handlers, [self._graph], _rebuild, _info,
            reveal=lambda value, at: reveal(value, at, secrets), redact=secrets.redact,
            poll=HORIZON * 2, park_after=HORIZON * 2, alone=True,
        )  # fmt: skip
        chance = random.Random(SEED)  # noqa: S311  the same in every rehearsal
        shell.deps = msgspec.structs.replace(shell.deps, roll=chance.random)
        return shell

    def _request(self) -> StartRequest:
        mocks, encode = self._mocks, self._codec.encode
        return StartRequest(
            self._graph,
            RUN,
            None if mocks.input is None else Raw(encode(mocks.input)),
            None if mocks.config is None else Raw(encode(mocks.config)),
            start_node=mocks.start_node,
        )

    async def _send(self, sent: Sent) -> None:
        """A signal or a cancel, when its time comes."""
        await asyncio.sleep(sent.at / SECOND)
        name, id = self._graph.name, self._shell.ids.text()
        if sent.name is None:
            body = self._codec.encode(sent.value) if sent.value else None
            message = Message(name, RUN, id, "cancel", "", body)
        else:
            message = signal_message(self._codec, name, RUN, sent.name, sent.value, id)
        await self._shell.post([message])

    def _unmocked(self, node: str, why: str) -> None:
        """An attempt has no answer: end the rehearsal, saying what is missing."""
        mocks, nodes = self._mocks, self._graph.plan.nodes
        if not self._refusal:
            missing = [
                id
                for id, one in nodes.items()
                if one.type in ("HTTP", "TASK")
                and id not in mocks.replies
                and one.step not in mocks.by_step
            ]
            called = f" (step {why})" if why and why != node else ""
            self._refusal = (
                f'node {node}{called} was reached and has no mock: add it under "steps", or say '
                f"a default; without a mock are: {', '.join(missing)}"
                if node
                else why
            )
        self._over.set()

    def _look(self, due: float | None) -> bool:
        """Nothing is ready: is it over? Else time may pass."""
        if self._key in self._shell.live and due is not None and due < HORIZON:
            return False
        self._over.set()
        return True

    async def _outcome(self) -> Rehearsal:
        loaded = await self._store.load(self._key)
        history = []
        for record in told(loaded.journal):
            await self._whole(record)
            history.append(record)
        live = self._shell.live.get(self._key)
        reason = loaded.run.stalled or ("" if live is None else self._waits(live.run.nodes))
        return Rehearsal(
            self._graph,
            history,
            _EPOCH + timedelta(microseconds=self._mocks.now),
            reason=reason,
            stalled=live is None,
            notes=self._odd(history),
            expected=self._mocks.expect,
        )

    async def _whole(self, record: dict[str, Any]) -> None:
        """Put values that stand apart from their row back in."""
        for name in ("input", "config", "output"):
            number = record.pop(f"{name}_ref", None)
            if number is not None:
                (data,) = await self._store.payloads(self._key, [(record["seq"], number)])
                record[name] = self._codec.decode(data)

    def _waits(self, nodes: Mapping[str, Any]) -> str:
        """What would never end."""
        waits = []
        for node, state in nodes.items():
            if state.status != "waiting":
                continue
            if state.awaited_signal and state.wake_at is None:
                waits.append(f"{node} waits for signal {state.awaited_signal} for ever")
            else:
                waits.append(f"{node} waits for more than a hundred years")
        return "; ".join(waits) or "nothing would ever end it"

    def _odd(self, history: Iterable[Mapping[str, Any]]) -> list[str]:
        """Signals that changed nothing, answers that nobody asked for."""
        kept: dict[str, str] = {}
        ended = None
        for record in history:
            if record["do"] == "BufferSignal":
                kept[record["signal"]] = record["name"]
            elif record["do"] == "ConsumeSignal":
                kept.pop(record["signal"], None)
            elif record["do"] == "FinishRun":
                ended = record["time"]
        notes = [f"no node took signal {name}" for name in kept.values()]
        begun = _EPOCH + timedelta(microseconds=self._mocks.now)
        for sent in self._mocks.sent:
            if ended is not None and begun + timedelta(microseconds=sent.at) > ended:
                what = "the cancel" if sent.name is None else f"signal {sent.name}"
                notes.append(f"{what} was not sent: the run had ended before")
        return [*notes, *self._left_over(history)]

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


def _rebuild(stored: StoredDefinition) -> Definition[Any, Any]:
    raise NotFound(f"{stored.name} has one version here")


def _info(worker: str) -> WorkerInfo:
    return WorkerInfo(worker, RUN, "", 0)
