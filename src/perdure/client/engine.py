"""Engine: a client that also works. It owns runs, executes their steps and recovers them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Self, TypeVar

from perdure.client.client import Client, Listen
from perdure.client.emitting import bound_to, is_emitted
from perdure.client.working import Working
from perdure.drivers.native import NativeDriver, rebuild, startable
from perdure.engine.attempts.resources import Resources
from perdure.engine.attempts.secrets import Secrets
from perdure.engine.handlers.http import HttpHandler, HttpOptions
from perdure.engine.handlers.port import Handler
from perdure.engine.handlers.saga import SagaHandler
from perdure.engine.handlers.step import StepHandler, TypedStepHandler
from perdure.engine.handlers.task import TaskHandler
from perdure.engine.listeners import AT_LEAST
from perdure.engine.runs.observing import Observer
from perdure.engine.worker.shell import PARK_AFTER, POLL, Shell
from perdure.expr import reveal
from perdure.feed import ClientEvent, RunEvent, WorkflowRecord
from perdure.flow.calling import STEP_TYPE
from perdure.flow.codec import Codec, StepValues
from perdure.flow.driver import Driver, Duties, Host, driver_as
from perdure.flow.registry import Listed, Registry
from perdure.model.duration_forms import Duration
from perdure.model.durations import SECOND, microseconds
from perdure.model.errors import InvalidRequest, PerdureError, Unsupported
from perdure.model.graph import SAGA
from perdure.saga.builder import Saga
from perdure.stores.port import Store
from perdure.stores.rows import WorkerInfo
from perdure.telemetry import Telemetry

_log = logging.getLogger("perdure.engine")

Ev = TypeVar("Ev")


class Engine(Client):
    """`async with Engine("sqlite:///orders.db", [order, ship]) as engine: ...`

    definitions: graphs and steps, or modules that hold them. resources: objects steps ask for by
    type. secrets: what `secrets.<name>` in graph documents reads, a mapping or a function.
    http: limits and options of HTTP nodes. threads: how many `def` steps run at once. grace: how
    long running attempts, and listeners, may take to end when the engine closes. codec,
    telemetry: see Client; attempts are observed as well.

    On entering, runs that an earlier process left go on. Raises DefinitionError for what is
    wrong with the definitions (DuplicateName where two share a name), also for steps that a graph
    calls and that were not given and, without a codec, for types that only a codec reads;
    Unsupported for a driver that executes nothing in this process (see perdure.drivers.Host). One
    that wraps a driver of a store is asked and told like any; the work is done below it. A graph
    whose calls do not fit its steps is warned of, and each start of it raises DefinitionError,
    while runs of it that are there go on. StoreError where the store cannot be opened. Installs
    no signal handlers except in `serve`.
    """

    def __init__(
        self,
        store: str | Store | Driver,
        definitions: Iterable[Listed] = (),
        /,
        *,
        resources: Iterable[object] = (),
        secrets: Mapping[str, str] | Callable[[str], str | None] | Secrets | None = None,
        http: HttpOptions | None = None,
        threads: int | None = None,
        grace: Duration = 30,
        poll: Duration = POLL,
        park_after: Duration = PARK_AFTER,
        name: str = "",
        codec: Codec | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        super().__init__(store, codec=codec, telemetry=telemetry)
        registry = Registry.of(definitions, codec=codec is not None)
        objects = tuple(resources)
        secret = secrets if isinstance(secrets, Secrets) else Secrets(secrets)
        tasks = self._tasks(registry, threads)
        values = None if codec is None else StepValues(codec)
        handlers: dict[str, Handler] = {
            "TASK": tasks,
            STEP_TYPE: StepHandler(tasks) if values is None else TypedStepHandler(tasks, values),
            SAGA: SagaHandler(tasks, codec, values),
            "HTTP": HttpHandler(http or HttpOptions(), secret.redact),
        }
        self._registry = registry
        self._grace = microseconds(grace, "grace") / SECOND
        self._name = name

        def shell(driver: NativeDriver) -> Shell:
            return Shell(
                driver.store,
                driver.clock,
                driver.codec,
                handlers,
                list(registry.definitions.values()),
                partial(rebuild, known=registry.definition),
                self._info,
                resources=Resources(objects),
                reveal=lambda value, at: reveal(value, at, secret),
                redact=secret.redact,
                poll=microseconds(poll, "poll") / SECOND,
                park_after=microseconds(park_after, "park_after") / SECOND,
                alone=self._alone,
            )

        native = driver_as(self._driver, NativeDriver)
        self._working = None if native is None else Working(native, registry, shell)
        if self._working is not None:
            self._working.shell.telemetry = telemetry
            self._working.shell.served.startable = startable
        self._sagas = [one for one in registry.definitions.values() if isinstance(one, Saga)]
        self._duties = Duties(registry, objects, threads, codec, name, telemetry)
        self._host = _host_of(self._driver) if native is None else None

    #: Whether its store is its own, and ends with it.
    _alone = False
    _closing = False
    #: When listeners are waited for no longer, by the monotonic clock.
    _heard_until = 0.0

    def _tasks(self, registry: Registry, threads: int | None) -> TaskHandler:
        """Who runs the functions of steps."""
        return TaskHandler(registry.steps, threads)

    @property
    def _shell(self) -> Shell:
        if self._working is None:
            name = type(self._host).__name__
            raise Unsupported(f"{name} cannot do that: it needs a store of perdure's own")
        return self._working.shell

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        if self._host is not None:
            try:
                await self._host.work(self._duties)
            except BaseException:
                await self._driver.close()
                raise
            return self
        for why in self._working.unfit.values() if self._working is not None else ():
            _log.warning("%s\nNo new run of it is started here; runs that are there go on", why)
        try:
            await self._shell.open()
        except BaseException:
            await self._native.abandon()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._closing, self._heard_until = True, self._clock.monotonic() + self._grace
        try:
            if self._host is not None:
                await self._host.rest(self._grace)
            else:
                await self._shell.close(self._grace)
        finally:
            await super().__aexit__(*exc)

    def _patience(self) -> float:
        return max(self._heard_until - self._clock.monotonic(), AT_LEAST)

    async def resume(self) -> int:
        """Take every interrupted or waiting run that is due now; how many go on here, those
        taken when the engine was entered included. Raises PerdureError outside `async with`."""
        self._shell.check_working()
        claims = self._shell.claims
        claims.resumed += await claims.take_all()
        return claims.resumed

    async def _bound(self, event: object) -> list[Saga[Any]]:
        """The sagas that an event starts: of those that this engine was given."""
        if self._closing:
            raise PerdureError("the engine is closed: the event was not taken")
        if self._host is None:
            self._shell.check_working()
        return bound_to(event, self._sagas)

    async def serve(self) -> None:
        """Work until SIGTERM or SIGINT, then return; leaving the `async with` block ends the
        running attempts within the grace period. Only on the main thread, and only here are
        signals handled; afterwards they are handled as before."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        for number in before:
            loop.add_signal_handler(number, stop.set)
        try:
            await stop.wait()
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    def listen(self, event: type[Ev], /) -> Callable[[Listen[Ev]], Listen[Ev]]:
        """Decorate a function that is to hear of events of this class, after they are durable,
        one at a time and in order: of those that the engine tells (see perdure.feed), or of those
        that this engine is given by `emit`. It may be async; one that is not keeps everything else
        waiting while it runs. What it raises is logged and changes nothing. When the engine closes
        it is waited for until the grace is over, 1 s at least; then a warning names it, and it is
        canceled. Raises InvalidRequest for what is no event."""
        if _is_event(event, ClientEvent) or is_emitted(event):
            return super().listen(event)
        if not (_is_event(event, RunEvent) or _is_event(event, WorkflowRecord)):
            raise InvalidRequest(
                f"an engine tells nothing of {getattr(event, '__name__', event)}: listen to an "
                "event of perdure.feed, to RunEvent for all about its runs, to ClientEvent for "
                "all of its own calls, or to a class of yours whose events it is to emit"
            )

        def register(call: Listen[Ev]) -> Listen[Ev]:
            self._shell.feed.listen(event, call)
            return call

        return register

    def observe(self, observer: Observer) -> None:
        """See runs and what they record as it becomes durable (provisional)."""
        self._shell.observers.append(observer)

    def _info(self, worker: str) -> WorkerInfo:
        host = socket.gethostname()
        return WorkerInfo(worker, self._name or f"{host}:{os.getpid()}", host, os.getpid())


def _is_event(kind: Any, of: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, of)


def _host_of(driver: Driver) -> Host:
    """The driver, or the one inside it, that executes. Raises Unsupported where none does."""
    found = driver_as(driver, Host)  # type: ignore[type-abstract]
    if found is None:
        raise Unsupported(
            f"{type(driver).__name__} executes nothing in this process (it has no `work` and "
            "`rest`, see perdure.drivers.Host): use Client to start its runs"
        )
    return found
