"""Shell: one worker process's engine, between a store and the runs it holds.

It starts runs, claims those that are due, keeps the live ones, and tells who waits how they
ended. What a run decides is the kernel's business, how a step is executed the handlers'.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final

from perdure.engine.attempts.dispatcher import Dispatcher
from perdure.engine.attempts.timeouts import Timeouts
from perdure.engine.clock import Clock
from perdure.engine.handlers.port import Handler
from perdure.engine.ids import Ids
from perdure.engine.lane import Lane
from perdure.engine.listeners import AT_LEAST
from perdure.engine.outages import Outages, unrecorded
from perdure.engine.runs.births import Births
from perdure.engine.runs.effects import Effects
from perdure.engine.runs.live_run import LiveRun
from perdure.engine.runs.observing import Observer
from perdure.engine.runs.retrying import RetryRequest, Writer, retry
from perdure.engine.runs.served import Served
from perdure.engine.runs.shared_runner import SharedRunner
from perdure.engine.runs.starting import to_publish
from perdure.engine.runs.unwritten import Unwritten
from perdure.engine.shielded import shielded
from perdure.engine.spawned import Spawned
from perdure.engine.waiters import Waiters
from perdure.engine.worker.beats import Beats
from perdure.engine.worker.claims import Claims
from perdure.engine.worker.feed import Feed
from perdure.engine.worker.parking import Parking
from perdure.engine.worker.post import Post
from perdure.engine.worker.retention import purge_for_ever
from perdure.engine.worker.starts import Starts
from perdure.engine.worker.watchdog import Watchdog
from perdure.kernel.actions import FinishRun
from perdure.kernel.onward import Decided
from perdure.kernel.protocol import Codec, Deps
from perdure.kernel.run import Run
from perdure.model.definition import Definition
from perdure.model.durations import SECOND
from perdure.model.errors import PerdureError, StoreError, Unsupported
from perdure.model.policy import NO_RETRY, RetryPolicy
from perdure.stores.answers import Started, Verdict
from perdure.stores.port import LEASE, Store
from perdure.stores.rows import JournalRow, NewRun, StoredDefinition, WorkerInfo
from perdure.telemetry import Telemetry

_log = logging.getLogger("perdure.engine")


#: Defaults, in seconds.
POLL: Final = 0.75
PARK_AFTER: Final = 10.0


_NOBODY: Final[Mapping[str, LiveRun]] = {}


class Shell:
    """Use: `await open()`, then start and wait, then `await close(grace)`.

    `definitions` are served by name: their due runs are claimed. `rebuild` makes a definition
    of a stored one, for runs that keep an older version than the one served. `poll`: how often
    the store is asked what is due, in seconds; `park_after`: how long a run rests in memory that
    only waits. `alone`: nobody else works on the store, and it ends with this process: there is no
    lease to keep, nothing to take over, nothing to purge.
    """

    #: Where attempts are observed; None: where the process says.
    telemetry: Telemetry | None = None
    #: Runs of which the store had not taken the last rows when this was closed; None: it had
    #: taken all.
    unrecorded: list[str] | None = None

    def __init__(
        self,
        store: Store,
        clock: Clock,
        codec: Codec,
        handlers: Mapping[str, Handler],
        definitions: Sequence[Definition[Any, Any]],
        rebuild: Callable[[StoredDefinition], Definition[Any, Any]],
        info: Callable[[str], WorkerInfo],
        *,
        resources: Any = None,
        reveal: Callable[[Any, Mapping[str, str]], Any] | None = None,
        redact: Callable[[str], str] | None = None,
        poll: float = POLL,
        park_after: float = PARK_AFTER,
        alone: bool = False,
    ) -> None:
        self.store = store
        self.clock = clock
        self.ids = Ids(clock.now)
        self.worker = ""
        self.live: dict[bytes, LiveRun] = {}
        #: The live runs by workflow and id.
        self._named: defaultdict[str, dict[str, LiveRun]] = defaultdict(dict)
        self.observers: list[Observer] = []
        #: Told of reports that changed nothing: the run, the event, why.
        self.on_ignored: Callable[[LiveRun, Any, str], None] | None = None
        # How it stands, as its runs see it: see Holder.
        self.stopping = self.held_back = self.struck_off = False
        self.lease_over = 0.0
        self.in_hand: set[bytes] = set()
        self.given_up: dict[bytes, str] = {}
        self.outages, self.unwritten = Outages(clock.monotonic), Unwritten()
        self.timeouts, self.tasks = Timeouts(), Spawned()
        self.dispatcher = Dispatcher(
            handlers, codec, clock, self.timeouts, resources, reveal, redact
        )
        self.deps = Deps(clock.now, self.ids.text, random.random, codec, self._policy, _odd)
        at_once, told = not store.durable, self.outages.note
        self.commits: Lane[JournalRow, Verdict] = Lane(
            store.commit, at_once=at_once, alone=self._alone_at_work,
            note=partial(told, "writing rows"),
        )  # fmt: skip
        self.waiters = Waiters(store, self.live.__contains__)
        self.effects = Effects(self)
        starts: Lane[NewRun, Started] = Lane(
            store.start, at_once=at_once, note=partial(told, "starting runs")
        )
        self.starts, self.post = Starts(self, starts), Post(self)
        self.births = Births(self, self.starts.born, beats=not alone)
        self.served = Served(store, self.outages, definitions, rebuild)
        self.claims = Claims(self, poll)
        self.beats = Beats(self, poll)
        self.parking = Parking(self, park_after)
        self.shared_runner = SharedRunner(self)
        self.watchdog = Watchdog(self)
        self.feed = Feed(self)
        self._handlers, self._info, self._alone = handlers, info, alone
        self.next_commit: Callable[[], int] = count(1).__next__
        self._unsubscribe: Callable[[], None] | None = None

    # ------------------------------------------------------------------ life

    async def open(self) -> None:
        """Register as a worker, free what dead workers held, and begin to claim. Raises
        StoreError, with nothing left running."""
        try:
            await self._enlist()
        except BaseException:
            await self.close(0)
            raise

    async def _enlist(self) -> None:
        self.shared_runner.open()
        for definition in self.served.own:
            await self.publish(definition)
        freed = await self.register()
        if freed:
            _log.info("%d run(s) of workers that died go on here", freed)
        with suppress(Unsupported):  # due runs and mail are found by looking, only later
            self._unsubscribe = self.store.subscribe(self._hinted, self.post.overheard)
            self.births.hears = True
        if self._alone:
            self.leased(math.inf)
            await self.claims.open()  # runs ask for others
            return
        self.watchdog.open()
        await self.claims.open()
        self.beats.open()
        self.tasks.spawn(purge_for_ever(self.store))

    async def register(self) -> int:
        """Become a worker under a new id; how many runs of dead ones were freed. Raises
        StoreError: then nothing has changed."""
        worker, began = self.ids.text(), self.clock.monotonic()
        freed = await self.store.register(self._info(worker))
        self.worker, self.struck_off = worker, False
        self.leased(began + LEASE / SECOND)
        return freed

    def leased(self, until: float) -> None:
        """The lease lasts until then, by the monotonic clock; what was held back goes on."""
        self.lease_over = max(self.lease_over, until)
        if self.held_back:
            self.held_back = False
            for live in list(self.live.values()):
                if not live.dead:
                    live.work.start()

    def _hinted(self) -> None:
        """Something may be due, or have mail."""
        self.claims.look()
        self.beats.hint()

    def _alone_at_work(self) -> bool:
        """Whether one run with one attempt is all there is: nobody else could have a row now."""
        if len(self.live) != 1:
            return False
        [live] = self.live.values()
        return live.dead or live.work.is_alone

    @property
    def may_claim(self) -> bool:
        """Whether this worker is alive, as far as it knows, and wants more runs."""
        if self.stopping or self.struck_off:
            return False
        return self.clock.monotonic() < self.lease_over

    async def close(self, grace: float) -> None:
        """Start nothing new, let running attempts end and listeners hear within `grace` seconds,
        write what is done, and let the rest go. Changes no run's status."""
        self.stopping, began = True, self.clock.monotonic()
        if self._unsubscribe is not None:
            self._unsubscribe()
        await self.claims.close()
        for live in self.live.values():
            if not live.dead:
                live.work.stop_queued()
        runners = [task for live in self.live.values() for task in live.runners]
        if runners and grace > 0:
            await asyncio.wait(runners, timeout=grace)
        await self.beats.close()
        self.parking.record_begun()
        try:
            async with asyncio.timeout(max(grace, 1.0)):
                await self.commits.drain()
                await self.starts.lane.drain()
                await self.parking.let_go_all()
        except TimeoutError:
            self.unrecorded = []
        left = [f"{run.workflow}/{run.run_id}" for run in self.live.values() if run.unrecorded]
        if left or self.unrecorded is not None:
            self.unrecorded = left
            _log.error("%s", unrecorded(left))
        await self.feed.close(max(began + grace - self.clock.monotonic(), AT_LEAST))
        await self.forget_all()
        await self.watchdog.close()
        try:
            await self.store.unregister(self.worker)
        except StoreError as error:
            _log.warning("could not sign off (%s): the next worker finds the runs", error)

    async def forget_all(self) -> None:
        """Let everything in memory go, and what attempts were made with; what is not durable never
        was."""
        self.commits.abandon()
        self.starts.abandon()
        for live in list(self.live.values()):
            live.die()
        self.live.clear()
        self._named.clear()
        self.births.close()
        self.waiters.close()
        self.timeouts.close()
        await self.tasks.end()
        for handler in self._handlers.values():
            await handler.close()

    # ------------------------------------------------------------------ asked by clients

    def check_working(self) -> None:
        """Raise PerdureError before `open` and after `close`: only a worker may hold runs."""
        if self.stopping:
            raise PerdureError("the engine is closed: nothing was started")
        if not self.worker:
            raise PerdureError("the engine is not at work yet: use `async with engine:`")

    async def publish(self, definition: Definition[Any, Any]) -> None:
        """Keep the definition with the store, so that its runs outlive its file."""
        await self.store.define(to_publish(definition, self.clock.now()))

    async def retry(self, request: RetryRequest) -> None:
        """Let an ended run go on, as its short owner; a worker that serves it, maybe this one,
        takes it. Raises what `retry` raises."""
        await self.publish(request.definition)
        writer = Writer(self.worker, self.next_commit, self.in_hand)
        await retry(self.store, self.deps, request, writer)
        self.claims.look()

    # ------------------------------------------------------------------ runs in memory

    def enter(self, live: LiveRun, run: Run) -> None:
        """A run came into memory. One of the same key that is there still was let go by the
        store, and has not heard of it yet."""
        before = self.live.get(live.key)
        if before is not None:
            before.die()
        self.live[live.key] = live
        self._named[live.workflow][live.run_id] = live
        if run.deadline is not None:
            self.effects.deadline(live)
        for observer in self.observers:
            shielded(observer.entered, live, run)

    def forget(self, live: LiveRun) -> None:
        """A run leaves memory; another one in its place stays."""
        key = live.key
        if self.live.get(key) is live:
            del self.live[key]
            del self._named[live.workflow][live.run_id]
            if key in self.claims.lone:
                self.claims.left(key)

    def key_of(self, workflow: str, run_id: str) -> bytes | None:
        """The key of a run that is in memory."""
        live = self._named.get(workflow, _NOBODY).get(run_id)
        return None if live is None else live.key

    def show(self, live: LiveRun, transition: Decided) -> None:
        """Tell the observers what became durable."""
        for observer in self.observers:
            shielded(observer.recorded, live, transition)

    def ignored(self, live: LiveRun, event: Any, reason: str) -> None:
        """A local report changed nothing, and nothing is written of it (D-38)."""
        if self.on_ignored is not None:
            shielded(self.on_ignored, live, event, reason)

    def finished(self, live: LiveRun, action: FinishRun) -> None:
        """A run's end is durable."""
        self.forget(live)
        live.die()
        self.unwritten.forget(live.key)
        self.waiters.ended(live.key, action)
        self.feed.records.ended(live, action)

    def drop(self, live: LiveRun) -> None:
        """The run belongs to another worker now, or to none: forget it."""
        self.forget(live)
        live.die()
        self.unwritten.forget(live.key)
        self.waiters.left(live.key)

    def left(self, live: LiveRun, verdict: Any) -> None:
        """The row by which the run is let go of was answered: it is held here no more. Where it
        could not be written, the next beat gives back what the store still has under our name."""
        self.forget(live)
        self.waiters.left(live.key)
        if verdict not in ("accepted", "mine"):
            _log.warning("%s/%s was let go: %s", live.definition.name, live.run_id, verdict)

    async def read(self, key: bytes, place: tuple[int, int]) -> bytes:
        """A large value, tried again until the store gives it. Raises PayloadMissing."""
        return (await self.outages.read(lambda: self.store.payloads(key, [place])))[0]

    def _policy(self, step: str) -> RetryPolicy:
        handler = self._handlers.get("TASK")
        return NO_RETRY if handler is None else handler.policy(step)


def _odd(run: Run, what: str) -> None:
    _log.warning("%s/%s: %s", run.definition, run.id, what)
