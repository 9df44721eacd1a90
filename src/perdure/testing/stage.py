"""Stage: where a run is played in virtual time, by the real engine on a store of its own.

Who plays on it says what the world answers (handlers) and which signals come when. Nothing outlives
it; a wait that nothing would ever end is told instead of waited for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final, TypeVar

import msgspec

from perdure.client.history import told
from perdure.codec.values import JsonCodec
from perdure.engine.attempts.secrets import Secrets
from perdure.engine.clock import Clock
from perdure.engine.handlers.port import Handler
from perdure.engine.worker.shell import Shell
from perdure.expr import reveal
from perdure.model.definition import Definition
from perdure.model.driving import StartRequest
from perdure.model.durations import SECOND
from perdure.model.errors import InvalidRequest, NotFound
from perdure.model.moments import moment
from perdure.stores.answers import LoadedRun, Started
from perdure.stores.memory import MemoryStore
from perdure.stores.rows import NEVER, Message, StoredDefinition, WorkerInfo
from perdure.testing.mocks import Sent
from perdure.testing.virtual import VirtualClock, VirtualLoop

T = TypeVar("T")

#: Virtual seconds after which nothing is waited for any more: a hundred years.
HORIZON: Final = 100 * 365.25 * 86_400
#: Every run on a stage has this id, and the same chance.
RUN: Final = "rehearsal"
SEED: Final = 1


class OwnStore(MemoryStore):
    """A memory store in virtual time, whose one worker lives for ever."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        #: Makes definitions of names that nobody has published.
        self.unpublished: Callable[[str], StoredDefinition] | None = None

    async def latest_definition(self, name: str) -> StoredDefinition:
        """See Store.latest_definition."""
        try:
            return await super().latest_definition(name)
        except NotFound:
            if self.unpublished is None:
                raise
            return self.unpublished(name)

    def now(self) -> int:
        """See Store.now."""
        return self._clock.now()

    async def register(self, worker: WorkerInfo) -> int:
        """See Store.register."""
        freed = await super().register(worker)
        self._leases[worker.id] = NEVER
        return freed

    def next_start(self, now: int) -> int | None:
        """When the next run that nobody holds is due, after now."""
        dues = [run.ready_at for run in self._runs.values() if run.owner is None]
        return min((due for due in dues if now < due < NEVER), default=None)


class Ended(msgspec.Struct):
    """How it came out. `reason`: why it would go on for ever, or could not go on (`stalled`)."""

    loaded: LoadedRun
    history: list[dict[str, Any]]
    reason: str
    stalled: bool


class Stage:
    """One run: the engine, and who sends the signals. `now` in µs since the epoch."""

    def __init__(
        self,
        definition: Definition[Any, Any],
        sent: Sequence[Sent],
        now: int,
        *,
        secrets: Secrets | None = None,
        beside: Sequence[Definition[Any, Any]] = (),
    ) -> None:
        self._definition = definition
        self._sent = sent
        self._refusal = ""
        self._over = asyncio.Event()
        self.codec = JsonCodec()
        self.clock = VirtualClock(begin=now, longest_sleep=float("inf"))
        self.store = OwnStore(self.clock)
        self._secrets = secrets or Secrets(lambda name: f"the secret {name}")
        self._served = [definition, *beside]
        self.handlers: dict[str, Handler] = {}
        self._key = b""

    def on_a_loop_of_its_own(self, request: StartRequest) -> Ended:
        """Play it now, whether or not an event loop is running."""

        def play() -> Ended:
            loop = VirtualLoop()
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                return runner.run(self.play(loop, request))

        return beside_any_loop(play)

    async def play(self, loop: VirtualLoop, request: StartRequest) -> Ended:
        """Run it to its end, or to where nothing more would happen."""
        shell = self._shell = self._engine()
        await shell.open()
        try:
            started = shell.starts.start(request)
            self._key = (started if isinstance(started, Started) else await started).key
            senders = [shell.tasks.spawn(self._send(sent)) for sent in self._sent]
            loop.before_jump = self._look
            await self._over.wait()
            loop.before_jump = None
            for sender in senders:
                sender.cancel()
            if self._refusal:
                raise InvalidRequest(self._refusal)
            ended = await self._ended()
            await self.after(ended)
            return ended
        finally:
            loop.before_jump = None
            await shell.close(0)

    async def after(self, ended: Ended) -> None:
        """Look closer at how it ended; nothing unless somebody says more."""

    def rebuilt(self, stored: StoredDefinition) -> Definition[Any, Any]:
        """A definition that is not served. Raises NotFound."""
        raise NotFound(f"{stored.name} has one version here")

    def refuse(self, why: str) -> None:
        """The world has no answer: end it all, saying what is missing."""
        self._refusal = self._refusal or why
        self._over.set()

    def _engine(self) -> Shell:
        secrets = self._secrets
        shell = Shell(
            self.store, self.clock, self.codec, self.handlers, self._served, self.rebuilt, _info,
            reveal=lambda value, at: reveal(value, at, secrets), redact=secrets.redact,
            poll=HORIZON * 2, park_after=HORIZON * 2, alone=True,
        )  # fmt: skip
        chance = random.Random(SEED)  # noqa: S311  the same in every rehearsal
        shell.deps = msgspec.structs.replace(shell.deps, roll=chance.random)
        return shell

    async def _send(self, sent: Sent) -> None:
        """A signal or a cancel, when its time comes."""
        await asyncio.sleep(sent.at / SECOND)
        name, id = self._definition.name, self._shell.ids.text()
        if sent.name is None:
            body = self.codec.encode(sent.value) if sent.value else None
            message = Message(name, RUN, id, "cancel", "", body)
        else:
            message = Message(name, RUN, id, "signal", sent.name, self.codec.encode(sent.value))
        await self._shell.post.post([message])

    def _look(self, due: float | None) -> bool:
        """Nothing is ready: is it over? Else time may pass."""
        if self._key in self._shell.live and due is not None and due < HORIZON:
            return False
        self._over.set()
        return True

    async def _ended(self) -> Ended:
        loaded = await self.store.load(self._key)
        history = []
        for record in told(loaded.journal):
            await self._whole(record)
            history.append(record)
        live = self._shell.live.get(self._key)
        reason = loaded.run.stalled or ("" if live is None else self._waits(live.run.nodes))
        return Ended(loaded, history, reason, live is None)

    async def _whole(self, record: dict[str, Any]) -> None:
        """Put values that stand apart from their row back in."""
        for name in ("input", "config", "output"):
            number = record.pop(f"{name}_ref", None)
            if number is not None:
                (data,) = await self.store.payloads(self._key, [(record["seq"], number)])
                record[name] = self.codec.decode(data)

    def _waits(self, nodes: Mapping[str, Any]) -> str:
        """What would never end."""
        waits = []
        for node, state in nodes.items():
            child = state.child
            if state.status == "pending" and child is not None:
                asked = f"{child.definition}/{child.id}"
                waits.append(f"{node} waits for run {asked}, which nothing would ever end")
            if state.status != "waiting":
                continue
            if state.awaited_signal and state.wake_at is None:
                waits.append(f"{node} waits for signal {state.awaited_signal} for ever")
            else:
                waits.append(f"{node} waits for more than a hundred years")
        return "; ".join(waits) or "nothing would ever end it"


def beside_any_loop(play: Callable[[], T]) -> T:
    """Call what runs a loop: here, or in a thread where a loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return play()
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(play).result()


def unsent(history: Iterable[Mapping[str, Any]], sent: Iterable[Sent], now: int) -> list[str]:
    """Signals that changed nothing, in words."""
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
    begun = moment(now)
    for one in sent:
        if ended is not None and begun + timedelta(microseconds=one.at) > ended:
            what = "the cancel" if one.name is None else f"signal {one.name}"
            notes.append(f"{what} was not sent: the run had ended before")
    return notes


def _info(worker: str) -> WorkerInfo:
    return WorkerInfo(worker, RUN, "", 0)
