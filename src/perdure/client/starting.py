"""Starting: a run is made, or the one that is there is joined. What can be refused is refused
before anything is written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from perdure.client.options import StartOptions
from perdure.client.reach import Reach
from perdure.client.run import Run
from perdure.drivers.native import NativeDriver
from perdure.flow.driver import driver_as
from perdure.flow.step import Step
from perdure.model.carrier import checked_carrier
from perdure.model.definition import Definition
from perdure.model.driving import StartRequest
from perdure.model.durations import microseconds
from perdure.model.errors import AlreadyStarted, DefinitionError, Unsupported
from perdure.model.names import check_run_id
from perdure.telemetry.observation import UNOBSERVED, Call, Unobserved

_log = logging.getLogger("perdure.client")


class Starting:
    """The starts of one client."""

    __slots__ = ("_new_id", "_reach")

    def __init__(self, reach: Reach, new_id: Callable[[], str]) -> None:
        self._reach = reach
        self._new_id = new_id

    async def start(
        self,
        definition: Definition[Any, Any] | str,
        input: object,
        options: StartOptions,
        call: Call | Unobserved,
        *,
        joins: bool,
    ) -> Run[Any]:
        """See Client.start."""
        if not isinstance(definition, Definition):
            definition = await self._reach.driver.definition(declared(definition))
        if options or call is not UNOBSERVED:
            request = self._request(definition, input, options, call)
        else:
            given = None if input is None else self._reach.written(definition, input)
            request = StartRequest(definition, self._new_id(), given)
        driver = self._reach.driver
        if not isinstance(driver, NativeDriver):  # that one asks as it decides
            definition.check_input(request.input, self._reach.codec)
        run: Run[Any] = Run(self._reach, definition, request.id)
        there = run._former and await self._is_there(run)
        if there or not await driver.start(request):
            call.exists()
            await self._exists(run, request, joins=joins)
        elif self._reach.telling.listeners.each:
            self._reach.telling.started(run.workflow, run.id)
        return run

    def _request(
        self,
        definition: Definition[Any, Any],
        input: object,
        options: StartOptions,
        call: Call | Unobserved,
    ) -> StartRequest:
        """What a driver is asked, with all that can be said. Raises InvalidRequest, InvalidId,
        Unsupported."""
        if options.get("using") is not None:
            message = "starting in the caller's transaction is not there yet: leave out using="
            raise Unsupported(message)
        config, id = options.get("config"), options.get("id")
        return StartRequest(
            definition,
            self._new_id() if id is None else check_run_id(id),
            None if input is None else self._reach.written(definition, input),
            None if config is None else Raw(self._reach.codec.encode(config)),
            options.get("metadata") or {},
            options.get("start_node"),
            microseconds(options["delay"], "delay") if "delay" in options else 0,
            call.carrier(checked_carrier(options.get("trace"))),
        )

    async def _exists(self, run: Run[Any], request: StartRequest, *, joins: bool) -> None:
        """The run is there. Raises AlreadyStarted."""
        if not joins:
            await run._named()
            message = f"{run} is there already: use if_exists='join' to join it"
            raise AlreadyStarted(message, run)
        if request.input is not None and driver_as(self._reach.driver, NativeDriver) is not None:
            await self._compare(run, self._reach.codec.decode(bytes(request.input)))

    async def _is_there(self, run: Run[Any]) -> bool:
        """Whether another engine has the run, maybe under a name of before: it is asked first, as
        only a store knows with the start what a run may be recorded under."""
        if driver_as(self._reach.driver, NativeDriver) is not None:
            return False
        await run._named()
        return not run._former

    async def _compare(self, run: Run[Any], input: Any) -> None:
        """Warn when the run that is joined was started with another input. What one that went on
        as new was started with is not known any more."""
        async for record in run.history():
            if record["do"] == "OpenRun" and record.get("input") != input:
                _log.warning("%s was started with another input and keeps that one", run)
            return


def declared(thing: Any) -> Any:
    """A definition, or the name of one. Raises DefinitionError for anything else (W-15)."""
    if isinstance(thing, (Definition, str)):
        return thing
    name = getattr(thing, "__qualname__", None) or repr(thing)
    what = "a step" if isinstance(thing, Step) else "not declared"
    raise DefinitionError(
        f"{name} is {what}, and no run can be made of it: give a workflow (an `async def` under "
        "@workflow(max_duration=...)), a graph, or the name of one"
    )
