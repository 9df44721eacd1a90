"""NativeDriver: runs that perdure's own engine executes, kept in a store.

By itself it does not execute: it writes starts and messages, and whoever works on the store goes
on with them. One that an engine of this process works for asks that first, which does the same
through the runs in its memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from perdure.codec.values import JsonCodec
from perdure.drivers.unowned import start_unowned
from perdure.engine.clock import Clock
from perdure.engine.ids import Ids
from perdure.engine.runs.retrying import RetryRequest, Writer, retry
from perdure.engine.runs.starting import begin, to_publish
from perdure.engine.waiters import Waiters
from perdure.flow.known import KnownWorkflow
from perdure.graph.definition import Graph
from perdure.kernel.protocol import Deps
from perdure.model.definition import Definition
from perdure.model.driving import Outcome, StartRequest
from perdure.model.errors import NotFound, PerdureError, StoreError
from perdure.model.names import check_run_id
from perdure.model.status import RunStatus
from perdure.saga.builder import Saga
from perdure.stores.answers import Posted, RunRow, Started
from perdure.stores.port import Store
from perdure.stores.rows import Message, StoredDefinition

if TYPE_CHECKING:
    from perdure.flow.driver import Driver

#: Tries at telling a run something, and seconds before the second one; doubled each time.
POST_TRIES: Final = 4
POST_DELAY: Final = 0.05


class Local(Protocol):
    """An engine in this process, that works on the driver's store."""

    @property
    def waiters(self) -> Waiters:
        """Who waits for the ends of its runs."""

    def known(self, name: str, /) -> Definition[Any, Any] | None:
        """What it was given of this name."""

    def begin(self, request: StartRequest, /) -> Started | Awaitable[Started | None]:
        """Start a run; None for one that only others can begin."""

    async def post(self, message: Message, /) -> Posted:
        """Post a message, and tell the run at once if it is here."""

    async def retry(self, request: RetryRequest, /) -> None:
        """Let an ended run go on."""

    def live(self, workflow: str, id: str, /) -> bytes | None:
        """The key of a run that is in memory; None for any other."""


class NativeDriver:
    """The Driver of a store. Making one does no I/O."""

    def __init__(self, store: Store, clock: Clock, codec: JsonCodec) -> None:
        self.store = store
        self.clock = clock
        self.codec = codec
        self.ids = Ids(clock.now)
        self.waiters = Waiters(store)
        self._local: Local | None = None
        self.is_open = False
        self._closed = False
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """See Driver.open. Raises PerdureError once it was closed."""
        if self.is_open:
            return
        if self._closed:
            raise PerdureError("this client or engine is closed: make a new one")
        async with self._opening:
            if not self.is_open:
                await self.store.open()
                self.is_open = True

    async def close(self) -> None:
        """See Driver.close."""
        self._closed = True
        self.waiters.close()
        if self.is_open:
            self.is_open = False
            await self.store.close()

    def work_for(self, engine: Local) -> None:
        """Ask this engine before the store, from now on. Raises PerdureError for a second one."""
        if self._local is not None:
            raise PerdureError(
                "an engine works for this driver already: give another one the URL of the store"
            )
        self._local, self.waiters = engine, engine.waiters

    async def abandon(self) -> None:
        """Close the store after what was to work on it could not begin; it may be tried again."""
        self.is_open = False
        await self.store.close()

    # ------------------------------------------------------------------ what every driver does

    async def definition(self, name: str, /) -> Definition[Any, Any]:
        """See Driver.definition: what the engine was given; else, of what the store knows, the
        version published last. Of a workflow whose code is elsewhere a KnownWorkflow."""
        if self._local is not None and (known := self._local.known(name)) is not None:
            return known
        await self.open()
        return startable(await self.store.latest_definition(name))

    async def start(self, request: StartRequest, /) -> bool:
        """See Driver.start."""
        if not self.is_open:
            await self.open()
        started: Started | None = None
        if self._local is not None:
            begun = self._local.begin(request)
            started = begun if isinstance(begun, Started) else await begun
        if started is None:
            started = await self._begin_unowned(request)
        return started.outcome != "exists"

    async def result(self, workflow: str, id: str, /) -> Outcome:
        """See Driver.result."""
        key = None if self._local is None else self._local.live(workflow, id)
        if key is not None:
            future = self.waiters.told(key)
            try:
                outcome = await future
            except BaseException:  # whoever waited goes away
                self.waiters.forget(key, future)
                raise
            if outcome is not None:
                return outcome
        return await self.waiters.wait(await self.row(workflow, id))

    async def status(self, workflow: str, id: str, /) -> RunStatus:
        """See Driver.status."""
        return (await self.row(workflow, id)).status

    async def signal(
        self, workflow: str, id: str, name: str, value: bytes, key: str | None, /
    ) -> None:
        """See Driver.signal."""
        made = self.ids.text() if key is None else key
        posted = await self.post(Message(workflow, id, made, "signal", name, value))
        if posted.outcome == "finished":
            raise NotFound(f"{workflow}/{id} has ended: nothing was sent")

    async def cancel(self, workflow: str, id: str, reason: str, /) -> None:
        """See Driver.cancel."""
        await self.tell(workflow, id, "cancel", self.codec.encode(reason) if reason else None)

    # ------------------------------------------------------------------ what only this one does

    async def row(self, workflow: str, id: str) -> RunRow:
        """What the store says of a run. Raises NotFound."""
        check_run_id(id)
        await self.open()
        return await self.store.describe(workflow, id)

    async def tell(self, workflow: str, id: str, kind: str, body: bytes | None = None) -> Posted:
        """Tell a run something that is no signal. Raises NotFound."""
        return await self.post(Message(workflow, id, self.ids.text(), kind, "", body))

    async def post(self, message: Message) -> Posted:
        """Put a message into its run's mailbox. Tried again after a StoreError: it has an id, and
        counts once. Raises NotFound."""
        check_run_id(message.run_id)
        await self.open()
        posted = await self._posted(message)
        if posted.outcome == "missing":
            raise NotFound(f"there is no run {message.definition}/{message.run_id}")
        return posted

    async def _posted(self, message: Message) -> Posted:
        delay = POST_DELAY
        for _ in range(POST_TRIES - 1):
            try:
                return await self._post_once(message)
            except StoreError:
                await asyncio.sleep(delay)
                delay *= 2
        return await self._post_once(message)

    async def retry(self, request: RetryRequest) -> None:
        """Let an ended run go on, as its short owner."""
        await self.open()
        if self._local is not None:
            return await self._local.retry(request)
        writer = Writer(self.ids.text(), lambda: 1, set())
        return await retry(self.store, self.deps, request, writer)

    @property
    def deps(self) -> Deps:
        """What decides a start or a retry."""
        return Deps(self.clock.now, self.ids.text, _no_chance, self.codec)

    async def _begin_unowned(self, request: StartRequest) -> Started:
        """Write the start: whoever claims the run goes on with it."""
        if not isinstance(request.definition, KnownWorkflow):  # the store has told us of that one
            await self.store.define(to_publish(request.definition, self.clock.now()))
        writer, key = self.ids.text(), self.ids.key()
        beginning = begin(request, self.deps, key=key, worker=writer, owned=False, commit=1)
        return await start_unowned(self.store, beginning.row)

    async def _post_once(self, message: Message) -> Posted:
        if self._local is not None:
            return await self._local.post(message)
        return (await self.store.post([message]))[0]


def _nothing(name: str) -> None:
    """What a process knows that was given no code."""


def startable(stored: StoredDefinition) -> Definition[Any, Any]:
    """A definition whose runs can be started: of a workflow whose code is elsewhere, what the store
    knows of it. Raises NotFound."""
    if stored.kind == KnownWorkflow.kind:
        return KnownWorkflow(stored.name, stored.version, stored.hash, stored.max_duration)
    return rebuild(stored)


def rebuild(
    stored: StoredDefinition, known: Callable[[str], Definition[Any, Any] | None] = _nothing
) -> Definition[Any, Any]:
    """A definition from what the store keeps of it. `known`: by name, what is registered here,
    which has the code that runs a saga's steps. Raises NotFound where only code makes it."""
    if stored.kind == Graph.kind:
        return Graph.load(stored.source)
    if stored.kind == Saga.kind:
        registered = known(stored.name)
        code = registered if isinstance(registered, Saga) else None
        return Saga.recorded(stored.source, stored.hash, code)
    raise NotFound(f"{stored.kind} {stored.name} is made by code that this process does not have")


def _no_chance() -> float:
    return 0.5  # neither a start nor a retry rolls


if TYPE_CHECKING:

    def _is_driver(made: NativeDriver) -> Driver:
        return made
