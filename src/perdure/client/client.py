"""Client: start runs and ask about them, from any process that reaches the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self, TypeAlias, TypeVar, Unpack, cast, overload

from perdure.client.bounds import Bound
from perdure.client.definitions import DefinitionInfo, infos
from perdure.client.emitting import PublishedSagas, checked_event, start_all
from perdure.client.listing import newest_first
from perdure.client.options import RunOptions, StartOptions, checked_key, settled
from perdure.client.reach import Reach
from perdure.client.run import Run
from perdure.client.run_info import RunInfo, info_of
from perdure.client.starting import Starting, declared
from perdure.client.telling import Telling
from perdure.client.urls import store_of
from perdure.codec.values import JsonCodec
from perdure.drivers.native import NativeDriver
from perdure.engine.clock import SystemClock
from perdure.engine.ids import Ids
from perdure.engine.listeners import CLOSING
from perdure.engine.runs.starting import to_publish
from perdure.flow.codec import Codec, TypedCodec
from perdure.flow.driver import Driver, driver_as
from perdure.model.definition import Definition
from perdure.model.errors import InvalidRequest, Unsupported
from perdure.model.moments import since_epoch
from perdure.model.protocols import fits
from perdure.model.status import RunStatus
from perdure.saga.builder import Saga
from perdure.stores.port import RunQuery, Store
from perdure.telemetry import Telemetry
from perdure.telemetry.observation import UNOBSERVED
from perdure.telemetry.service import checked_telemetry

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
D = TypeVar("D")
Ev = TypeVar("Ev")
Listen: TypeAlias = Callable[[Ev], Awaitable[None] | None]


class Client:
    """`Client("sqlite:///orders.db")`, used as an async context manager. Safe to use from many
    tasks of one event loop; making one does no I/O.

    codec: how values of workflows are recorded, JSON as it is unless given; the same for all who
    work with these runs. telemetry: where calls are observed, unless given what the process has
    set OpenTelemetry to."""

    def __init__(
        self,
        store: str | Store | Driver,
        /,
        *,
        codec: Codec | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._codec = JsonCodec() if codec is None else TypedCodec(codec)
        self._clock = SystemClock()
        self._new_id = Ids(self._clock.now).text
        seen_by = checked_telemetry(telemetry)
        self._telling = Telling(self._clock.now)
        self._published = PublishedSagas()
        self._driver = self._driver_of(store)
        self._reach = Reach(self._driver, self._codec, seen_by, self._telling)
        self._starting = Starting(self._reach, self._new_id)

    def _driver_of(self, store: str | Store | Driver) -> Driver:
        """The driver of what was given: a URL, a store, or a driver."""
        if isinstance(store, str):
            store = store_of(store)
        if fits(store, Driver):
            return cast("Driver", store)
        return NativeDriver(cast("Store", store), self._clock, self._codec)

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(self, *exc: object) -> None:
        try:
            await self._telling.close(self._patience())
        finally:
            await self._driver.close()

    def _patience(self) -> float:
        """Seconds that listeners may still take."""
        return CLOSING

    async def _opened(self) -> None:
        await self._driver.open()

    @property
    def driver(self) -> Driver:
        """What reaches the runs; it lives as long as the client. No I/O."""
        return self._driver

    def driver_as(self, kind: type[D], /) -> D | None:
        """The driver, or the one inside it (and so on), of this type; None if there is none."""
        return driver_as(self._driver, kind)

    @property
    def _native(self) -> NativeDriver:
        return self._reach.native

    @property
    def _store(self) -> Store:
        return self._reach.store

    @property
    def _ids(self) -> Ids:
        return self._reach.native.ids

    # ------------------------------------------------------------------ starting

    @overload
    async def start(
        self, definition: Definition[None, O], /, **options: Unpack[StartOptions]
    ) -> Run[O]: ...
    @overload
    async def start(
        self, definition: Definition[I, O], input: I, /, **options: Unpack[StartOptions]
    ) -> Run[O]: ...
    @overload
    async def start(
        self, definition: str, input: object = ..., /, **options: Unpack[StartOptions]
    ) -> Run[Any]: ...
    async def start(
        self,
        definition: Definition[Any, Any] | str,
        input: object = None,
        /,
        **options: Unpack[StartOptions],
    ) -> Run[Any]:
        """Start a run; durable when this returns.

        See StartOptions for what can be said. A run that exists already raises AlreadyStarted
        (its `run` is the handle), or with if_exists="join" its handle is returned and the input
        ignored; a warning is logged when it is not the one the run was started with. Raises,
        with nothing written, InvalidRequest (PayloadTooLarge for an input over the limit),
        InvalidId, NotFound for a name that the store does not know, Unsupported for what the
        store or driver cannot do. Raises StoreError when it is not known whether the start was
        recorded: start again with the same id. An engine waits for a store that is away, however
        long: `asyncio.timeout` around the call bounds that, and leaves the run started whole, or
        to be started once the store is back, or not at all.
        """
        if options:
            settled(options)
        joins = options.pop("if_exists", "raise") != "raise"
        call = self._reach.observed("start", definition, options.get("trace"))
        if call is UNOBSERVED:
            return await self._starting.start(definition, input, options, call, joins=joins)
        with call:
            return await self._starting.start(definition, input, options, call, joins=joins)

    @overload
    async def run(self, definition: Definition[None, O], /, **options: Unpack[RunOptions]) -> O: ...
    @overload
    async def run(
        self, definition: Definition[I, O], input: I, /, **options: Unpack[RunOptions]
    ) -> O: ...
    @overload
    async def run(
        self, definition: str, input: object = ..., /, **options: Unpack[RunOptions]
    ) -> Any: ...
    async def run(
        self,
        definition: Definition[Any, Any] | str,
        input: object = None,
        /,
        **options: Unpack[RunOptions],
    ) -> Any:
        """Start (or join) a run and wait for its result; see `start` and `Run.result`.

        With an `idempotency_key` a second call returns, or raises, what the first one did, also
        while that goes on, and in other processes. `timeout` bounds the wait, that for a store
        which is away included, and never the run. Raises what `start` does, StoreError also when
        the time is over before the start is known to be recorded; and for how the run ended
        RunFailed (or the failure's own class), Canceled, TimedOut.
        """
        if not options and not self._reach.is_observed():
            run = await self._starting.start(definition, input, {}, UNOBSERVED, joins=True)
            return await run._result()
        timeout = options.pop("timeout", None)
        options.setdefault("if_exists", "join")
        start = cast("StartOptions", options)
        if timeout is None:
            run = await self.start(definition, input, **start)
            return await run.result()
        bound = Bound(timeout)
        settled(start)
        if start.get("id") is None:  # whoever has to start it again needs to know it
            start["id"] = self._new_id()
        name = f"{getattr(definition, 'name', definition)}/{start['id']}"
        run = await bound.started(self.start(definition, input, **start), name)
        return await run._result_by(bound.left(), bound.seconds)

    @overload
    def get(self, definition: Definition[Any, O], id: str, /) -> Run[O]: ...
    @overload
    def get(self, definition: str, id: str, /) -> Run[Any]: ...
    def get(self, definition: Definition[Any, Any] | str, id: str, /) -> Run[Any]:
        """A handle, without asking the store."""
        return Run(self._reach, declared(definition), id)

    async def runs(
        self,
        *,
        workflow: str | Definition[Any, Any] | None = None,
        status: RunStatus | Sequence[RunStatus] | None = None,
        metadata: Mapping[str, str] | None = None,
        created_after: datetime | None = None,
    ) -> AsyncIterator[RunInfo]:
        """The runs that match, newest first. `workflow`: a name, or a definition with all names
        that it ever had. `metadata`: those that carry all of these; they are looked for among the
        others, page by page."""
        wanted = dict(metadata or {}).items()
        await self._opened()
        since = None if created_after is None else _since_epoch(created_after)
        names: Sequence[str | None] = (
            (workflow.name, *workflow.aliases) if isinstance(workflow, Definition) else (workflow,)
        )
        queries = [RunQuery(name, _statuses(status), since) for name in names]
        async for row in newest_first(self._store, queries):
            info = info_of(row)
            if wanted <= info.metadata.items():
                yield info

    # ------------------------------------------------------------------ events

    async def emit(self, event: object, /, *, idempotency_key: str | None = None) -> None:
        """Start a run of every saga that is `started_by` the event's class, or one that it
        derives from, with the event as payload. Returns once all of them are durable: they run
        also where this process dies at once. No run is waited for. Listeners to the class hear
        of the event then.

        Of an Engine those sagas that it was given; of a Client those that the store knows, each
        as it was published last, by the names of their events' classes. idempotency_key: the same
        event, emitted again with the same key, starts nothing more. Raises InvalidRequest for
        what is no event or no payload, and Unsupported for a driver that cannot say which sagas
        there are, both with nothing started; PerdureError once this is closing; StoreError where
        it is not known whether all was recorded: emit it again, with the same key."""
        checked_event(event)
        id = self._new_id() if idempotency_key is None else checked_key(idempotency_key)
        sagas = await self._bound(event)
        for saga in sagas if len(sagas) > 1 else ():  # one alone is asked as it is started
            saga.check_input(self._reach.written(saga, event), self._codec)
        trigger = {"trigger": type(event).__name__}
        await start_all(
            sagas,
            lambda saga: self.start(saga, event, id=id, if_exists="join", metadata=trigger),
        )
        self._telling.listeners.tell(event)

    async def _bound(self, event: object) -> list[Saga[Any]]:
        """The sagas that an event starts."""
        native = driver_as(self._driver, NativeDriver)
        if native is None:
            name = type(self._driver).__name__
            raise Unsupported(
                f"{name} cannot say which sagas an event starts, and nothing was started: emit it "
                "with an Engine that has the sagas, or start a run of each"
            )
        await self._opened()
        return await self._published.started_by(event, native.store)

    def listen(self, event: type[Ev], /) -> Callable[[Listen[Ev]], Listen[Ev]]:
        """Decorate a function that is to hear of calls of this client that succeeded, one at a
        time and in order: RunStarted, RunSignaled, RunCanceled of perdure.feed, or ClientEvent for
        all; or of events of a class of yours that this client is given by `emit`. It may be async.
        What it raises is logged and changes nothing. When the client closes it is waited for, 5 s
        at most; then a warning names it, and it is canceled. Raises InvalidRequest for other
        events."""

        def register(call: Listen[Ev]) -> Listen[Ev]:
            self._telling.listen(event, call)
            return call

        return register

    # ------------------------------------------------------------------ versions

    async def publish(
        self, definition: Definition[Any, Any], /, *, relabel: bool = False
    ) -> DefinitionInfo:
        """Make this the version that new runs by name, and retries, get; nothing is started, and
        runs keep the version they have. One that was published before can be published again: a
        rollback. Raises InvalidRequest, with nothing written, when its label is known with other
        content; `relabel` accepts that, the label then means this one.
        """
        await self._opened()
        await self._store.publish(to_publish(definition, self._clock.now()), relabel=relabel)
        known = await self.definitions(definition.name)
        return next(one for one in known if one.hash == definition.hash)

    async def definitions(self, name: str | None = None, /) -> list[DefinitionInfo]:
        """The versions the store knows, of one definition or of all: by name, the current one
        first, then those published before it."""
        await self._opened()
        return infos(await self._store.definitions(name))


def _statuses(status: RunStatus | Sequence[RunStatus] | None) -> tuple[RunStatus, ...]:
    if status is None:
        return ()
    return (status,) if isinstance(status, str) else tuple(status)


def _since_epoch(time: datetime) -> int:
    if time.tzinfo is None:
        raise InvalidRequest(f"time {time!r} has no time zone: use an aware datetime")
    return since_epoch(time)
