"""WorkingDriver: the driver of an engine. What it does goes through the runs in its memory where
it can, and it starts nothing that could not run here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from perdure.client.calls import unfit
from perdure.drivers.native import NativeDriver
from perdure.engine.retrying import RetryRequest
from perdure.engine.shell import Shell
from perdure.flow.known import KnownWorkflow
from perdure.flow.registry import Registry
from perdure.model.definition import Definition
from perdure.model.driving import Outcome, StartRequest
from perdure.model.errors import DefinitionError, NotFound
from perdure.stores.port import Message, Posted, Started


class WorkingDriver(NativeDriver):
    """A NativeDriver with a shell that works. Raises DefinitionError for graphs that call steps
    which are not listed."""

    def __init__(
        self, outer: NativeDriver, registry: Registry, shell: Callable[[NativeDriver], Shell]
    ) -> None:
        super().__init__(outer.store, outer.clock, outer.codec)
        self._registry = registry
        definitions = registry.definitions.values()
        _refuse([problem for d in definitions for problem in missing_steps(d, registry)])
        #: By hash, why no new run of a graph is started here.
        self.unfit = {d.hash: why for d in definitions if (why := unfit(d, registry))}
        self.shell = shell(self)
        self.waiters = self.shell.waiters

    async def definition(self, name: str, /) -> Definition[Any, Any]:
        """See Driver.definition; what the engine was given comes first."""
        found = self._registry.definition(name)
        return await super().definition(name) if found is None else found

    async def begin(self, request: StartRequest) -> Started:
        """Start it here."""
        definition = request.definition
        if isinstance(definition, KnownWorkflow):
            return await super().begin(request)  # whoever has the code takes it
        served = self.shell.claims.serves(definition)
        why = self.unfit.get(definition.hash) if served else unfit(definition, self._registry)
        # A run that is there already is joined all the same: it keeps what it has.
        if why and not await self._is_there(definition.name, request.id):
            raise DefinitionError(why)
        if not served:
            _refuse(missing_steps(definition, self._registry))
            # Served only once the store has it: what is served is not published again.
            await self.shell.publish(definition)
            self.shell.claims.add(definition)
        return await self.shell.start(request)

    async def _is_there(self, workflow: str, id: str) -> bool:
        try:
            await self.store.describe(workflow, id)
        except NotFound:
            return False
        return True

    async def post_once(self, message: Message) -> Posted:
        """Post, and tell the run at once if it is here."""
        return (await self.shell.post([message]))[0]

    async def retry_as(self, request: RetryRequest) -> None:
        """Retry it under this worker's name."""
        _refuse(missing_steps(request.definition, self._registry))
        await self.shell.retry(request)

    def ending_here(self, workflow: str, id: str) -> Awaitable[Outcome | None] | None:
        """How a run ends that is live here."""
        key = self.shell.key_of(workflow, id)
        return None if key is None else self.waiters.told(key)


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
