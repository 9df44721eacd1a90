"""Engine for synchronous programs, as the asynchronous one.

Written by .ci/mirror.py from perdure/client/engine.py:
change that, and run the script again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from perdure.blocking.client import Client
from perdure.blocking.mirroring import Serving
from perdure.client.client import Listen
from perdure.client.engine import Engine as AsyncEngine
from perdure.engine.attempts.secrets import Secrets
from perdure.engine.handlers.http import HttpOptions
from perdure.engine.worker.shell import PARK_AFTER, POLL
from perdure.flow.codec import Codec
from perdure.flow.driver import Driver
from perdure.flow.registry import Listed
from perdure.model.duration_forms import Duration
from perdure.stores.port import Store
from perdure.telemetry import Telemetry

Ev = TypeVar("Ev")


class Engine(Serving, Client):
    """`with Engine("sqlite:///orders.db", [order, ship]) as engine: ...`

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

    Twin = AsyncEngine

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
        super()._make(
            store,
            definitions,
            resources=resources,
            secrets=secrets,
            http=http,
            threads=threads,
            grace=grace,
            poll=poll,
            park_after=park_after,
            name=name,
            codec=codec,
            telemetry=telemetry,
        )

    def resume(self) -> int:
        """Take every interrupted or waiting run that is due now; how many go on here, those
        taken when the engine was entered included. Raises PerdureError outside `with`."""
        made: int = self._call(self._async.resume())
        return made

    def listen(self, event: type[Ev], /) -> Callable[[Listen[Ev]], Listen[Ev]]:
        """Decorate a function that is to hear of events of this class, after they are durable,
        one at a time and in order: of those that the engine tells (see perdure.feed), or of those
        that this engine is given by `emit`. It may be async; one that is not keeps everything else
        waiting while it runs. What it raises is logged and changes nothing. When the engine closes
        it is waited for until the grace is over, 1 s at least; then a warning names it, and it is
        canceled. Raises InvalidRequest for what is no event."""
        made: Callable[[Listen[Ev]], Listen[Ev]] = self._apply(lambda: self._async.listen(event))
        return made
