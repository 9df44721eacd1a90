"""Client for synchronous programs, as the asynchronous one.

Written by .ci/mirror.py from perdure/client/client.py:
change that, and run the script again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, Unpack, overload

from perdure.blocking.mirroring import Mirrored
from perdure.blocking.run import Run
from perdure.client.client import Listen
from perdure.client.definitions import DefinitionInfo
from perdure.client.options import RunOptions, StartOptions
from perdure.client.run_info import RunInfo
from perdure.flow.codec import Codec
from perdure.flow.driver import Driver
from perdure.model.definition import Definition
from perdure.model.status import RunStatus
from perdure.stores.port import Store
from perdure.telemetry import Telemetry

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
Ev = TypeVar("Ev")


class Client(Mirrored):
    """`Client("sqlite:///orders.db")`, used as a context manager. Safe to use from many
    threads, and in a child after a fork; making one does no I/O.

    codec: how values of workflows are recorded, JSON as it is unless given; the same for all who
    work with these runs. telemetry: where calls are observed, unless given what the process has
    set OpenTelemetry to."""

    Handle = Run

    def __init__(
        self,
        store: str | Store | Driver,
        /,
        *,
        codec: Codec | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        super()._make(store, codec=codec, telemetry=telemetry)

    @overload
    def start(
        self, definition: Definition[None, O], /, **options: Unpack[StartOptions]
    ) -> Run[O]: ...

    @overload
    def start(
        self, definition: Definition[I, O], input: I, /, **options: Unpack[StartOptions]
    ) -> Run[O]: ...

    @overload
    def start(
        self, definition: str, input: object = ..., /, **options: Unpack[StartOptions]
    ) -> Run[Any]: ...

    def start(
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
        made: Run[Any] = self._handle(self._call(self._async.start(definition, input, **options)))
        return made

    @overload
    def run(self, definition: Definition[None, O], /, **options: Unpack[RunOptions]) -> O: ...

    @overload
    def run(
        self, definition: Definition[I, O], input: I, /, **options: Unpack[RunOptions]
    ) -> O: ...

    @overload
    def run(
        self, definition: str, input: object = ..., /, **options: Unpack[RunOptions]
    ) -> Any: ...

    def run(
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
        made: Any = self._call(self._async.run(definition, input, **options))
        return made

    @overload
    def get(self, definition: Definition[Any, O], id: str, /) -> Run[O]: ...

    @overload
    def get(self, definition: str, id: str, /) -> Run[Any]: ...

    def get(self, definition: Definition[Any, Any] | str, id: str, /) -> Run[Any]:
        """A handle, without asking the store."""
        made: Run[Any] = self._handle(self._async.get(definition, id))
        return made

    def runs(
        self,
        *,
        workflow: str | Definition[Any, Any] | None = None,
        status: RunStatus | Sequence[RunStatus] | None = None,
        metadata: Mapping[str, str] | None = None,
        created_after: datetime | None = None,
    ) -> Iterator[RunInfo]:
        """The runs that match, newest first. `workflow`: a name, or a definition with all names
        that it ever had. `metadata`: those that carry all of these; they are looked for among the
        others, page by page."""
        yield from self._each(
            self._async.runs(
                workflow=workflow, status=status, metadata=metadata, created_after=created_after
            )
        )

    def emit(self, event: object, /, *, idempotency_key: str | None = None) -> None:
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
        self._call(self._async.emit(event, idempotency_key=idempotency_key))

    def listen(self, event: type[Ev], /) -> Callable[[Listen[Ev]], Listen[Ev]]:
        """Decorate a function that is to hear of calls of this client that succeeded, one at a
        time and in order: RunStarted, RunSignaled, RunCanceled of perdure.feed, or ClientEvent for
        all; or of events of a class of yours that this client is given by `emit`. It may be async.
        What it raises is logged and changes nothing. When the client closes it is waited for, 5 s
        at most; then a warning names it, and it is canceled. Raises InvalidRequest for other
        events."""
        made: Callable[[Listen[Ev]], Listen[Ev]] = self._apply(lambda: self._async.listen(event))
        return made

    def publish(
        self, definition: Definition[Any, Any], /, *, relabel: bool = False
    ) -> DefinitionInfo:
        """Make this the version that new runs by name, and retries, get; nothing is started, and
        runs keep the version they have. One that was published before can be published again: a
        rollback. Raises InvalidRequest, with nothing written, when its label is known with other
        content; `relabel` accepts that, the label then means this one.
        """
        made: DefinitionInfo = self._call(self._async.publish(definition, relabel=relabel))
        return made

    def definitions(self, name: str | None = None, /) -> list[DefinitionInfo]:
        """The versions the store knows, of one definition or of all: by name, the current one
        first, then those published before it."""
        made: list[DefinitionInfo] = self._call(self._async.definitions(name))
        return made
