"""Working: an engine as its driver sees it. What is asked goes through the runs in memory where it
can, and nothing is started that could not run here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from perdure.client.calls import unfit
from perdure.drivers.native import NativeDriver
from perdure.engine.runs.retrying import RetryRequest
from perdure.engine.waiters import Waiters
from perdure.engine.worker.shell import Shell
from perdure.flow.known import KnownWorkflow
from perdure.flow.registry import Registry
from perdure.model.definition import Definition
from perdure.model.driving import StartRequest
from perdure.model.errors import DefinitionError, NotFound
from perdure.stores.answers import Posted, Started
from perdure.stores.rows import Message

if TYPE_CHECKING:
    from perdure.drivers.native import Local


class Working:
    """A shell that works for a driver. Raises DefinitionError for graphs that call steps which
    are not listed."""

    def __init__(
        self, driver: NativeDriver, registry: Registry, shell: Callable[[NativeDriver], Shell]
    ) -> None:
        self._driver = driver
        self._registry = registry
        definitions = registry.definitions.values()
        _refuse([problem for d in definitions for problem in missing_steps(d, registry)])
        #: By hash, why no new run of a graph is started here.
        self.unfit = {d.hash: why for d in definitions if (why := unfit(d, registry))}
        self.shell = shell(driver)
        #: Whose runs may begin here without more ado: each was looked at, and is served.
        self._ready = {d for d in definitions if d.hash not in self.unfit}
        #: See Local.live.
        self.live = self.shell.key_of
        driver.work_for(self)

    @property
    def waiters(self) -> Waiters:
        """See Local.waiters."""
        return self.shell.waiters

    def known(self, name: str, /) -> Definition[Any, Any] | None:
        """See Local.known."""
        return self._registry.definition(name)

    def begin(self, request: StartRequest, /) -> Started | Awaitable[Started | None]:
        """See Local.begin. Raises DefinitionError for a graph whose calls do not fit its steps."""
        if request.definition in self._ready:
            return self.shell.starts.start(request)
        return self._begin(request)

    async def _begin(self, request: StartRequest) -> Started | None:
        definition = request.definition
        if isinstance(definition, KnownWorkflow):
            return None
        served = self.shell.served.serves(definition)
        why = self.unfit.get(definition.hash) if served else unfit(definition, self._registry)
        # A run that is there already is joined all the same: it keeps what it has.
        if why and not await self._is_there(definition.name, request.id):
            raise DefinitionError(why)
        if not served:
            _refuse(missing_steps(definition, self._registry))
            # Served only once the store has it: what is served is not published again.
            await self.shell.publish(definition)
            self.shell.served.add(definition)
            if not why:
                self._ready.add(definition)
        started = self.shell.starts.start(request)
        return started if isinstance(started, Started) else await started

    async def _is_there(self, workflow: str, id: str) -> bool:
        try:
            await self._driver.store.describe(workflow, id)
        except NotFound:
            return False
        return True

    async def post(self, message: Message, /) -> Posted:
        """See Local.post."""
        return (await self.shell.post.post([message]))[0]

    async def retry(self, request: RetryRequest, /) -> None:
        """See Local.retry: under this worker's name."""
        _refuse(missing_steps(request.definition, self._registry))
        await self.shell.retry(request)


if TYPE_CHECKING:

    def _is_local(made: Working) -> Local:
        return made


def _refuse(problems: list[str]) -> None:
    if problems:
        raise DefinitionError("; ".join(problems), problems)


def missing_steps(definition: Definition[Any, Any], registry: Registry) -> list[str]:
    """The steps that a graph calls and that are not listed, each as a sentence."""
    plan = getattr(definition, "plan", None)
    if plan is None:
        return []
    known = ", ".join(registry.steps) or "none"
    return [
        f"graph {definition.name}: node {node.id} calls step {node.step}, which this engine was "
        f"not given (it has: {known}); list the step beside the graph"
        for node in plan.nodes.values()
        if node.type == "TASK" and node.step is not None and node.step not in registry.steps
    ]
