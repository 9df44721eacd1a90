"""Dispatcher: carries out one attempt and turns however it ends into an event.

Whatever user code raises becomes the attempt's failure (D-29); only KeyboardInterrupt and
SystemExit go through. Returns None when the attempt was given up because the run was dropped or
the engine stops: then nothing is recorded and the attempt runs again elsewhere or later.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from perdure.codec.failures import record_failure
from perdure.engine.clock import Clock
from perdure.engine.handlers.port import Attempt, Handler, StepNotRegistered
from perdure.engine.observing import shielded
from perdure.engine.stepping import first_part, rest_of
from perdure.engine.timeouts import Timeouts, Watch
from perdure.kernel.events import NodeCompleted, NodeFailed
from perdure.kernel.protocol import Codec
from perdure.model.durations import SECOND
from perdure.model.errors import Failure, InvalidRequest, TimedOut
from perdure.model.failure import FailureRecord
from perdure.model.step_context import StepContext

_log = logging.getLogger("perdure.engine")
_LOGGERS: Final[dict[str, logging.Logger]] = {}

Report = NodeCompleted | NodeFailed
#: Of `first_part`, and of what stands around it.
First = Callable[..., tuple[Coroutine[Any, Any, Any], Any]]


class Order(msgspec.Struct, gc=False):
    """An attempt to carry out; `number` from 0. `secrets`: pointers into the input whose text is
    a secret's template."""

    node: str
    type: str
    task: str
    number: int
    input: Raw | None
    secrets: Mapping[str, str]
    timeout: int | None
    workflow: str
    run_id: str
    #: What runs it, where the definition holds it.
    step: Any = None
    #: Made once more, since the first time something cancelled the task it ran in.
    again: bool = False
    #: It waited for something: meanwhile others had the loop.
    waited: bool = False
    #: Its run has given the task up: it was asked to stop, and how it ends changes nothing.
    unwanted: bool = False


class Dispatcher:
    """Shared by all runs of an engine. `reveal` fills secrets in, anew for each attempt."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        codec: Codec,
        clock: Clock,
        timeouts: Timeouts,
        resources: Any = None,
        reveal: Callable[[Any, Mapping[str, str]], Any] | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self.handlers = handlers
        self.on_started: Callable[[Order], None] | None = None
        #: How many attempts wait for something.
        self.waiting = 0
        self._codec = codec
        self._clock = clock
        self._timeouts = timeouts
        self._resources = resources
        self._reveal = reveal
        self._redact = redact

    async def execute(self, order: Order, first: First = first_part) -> Report | None:
        """Carry the attempt out in the calling task; how it ended. `first` does what `first_part`
        does, for somebody who looks on."""
        handler = self.handlers[order.type]
        node, task, number = order.node, order.task, order.number
        try:
            input = UNSET if order.input is None else self._codec.decode(order.input)
            if order.secrets:
                input = self._revealed(input, order.secrets)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            return self._failed(order, error, permanent=True)
        attempt = Attempt(
            order.workflow, order.run_id, node, order.type, task, number, input, order.timeout,
            order.step,
        )  # fmt: skip
        limit = handler.timeout(attempt)
        deadline = self._clock.now() + limit if limit else None
        step = _EngineStep(
            order.workflow, order.run_id, node, task, number + 1, deadline, self._resources
        )
        if self.on_started is not None:
            shielded(self.on_started, order)
        context = copy_context()
        watch: Watch | None = None
        try:
            try:
                steps, waiting_for = context.run(first, handler.run, attempt, step)
            except StopIteration as stop:
                value = stop.value
            else:
                order.waited = True
                watch = self._watch(step, limit) if limit else None
                self.waiting += 1
                try:
                    value = await rest_of(steps, context, waiting_for)
                finally:
                    self.waiting -= 1
        except asyncio.CancelledError as error:
            step.canceled = True
            return self._canceled(order, limit, error, timed_out=_expired(watch))
        except (KeyboardInterrupt, SystemExit, GeneratorExit, StepNotRegistered):
            raise
        except BaseException as error:
            if _expired(watch) and _this_task().cancelling():
                # Its time was over, and it answered with an error of its own.
                _this_task().uncancel()
                return self._failed(order, _timed_out(order, limit / SECOND), permanent=False)
            return self._failed(order, error, permanent=not _retries(handler, attempt, error))
        finally:
            if watch is not None:
                self._timeouts.done(watch)
        if watch is not None and watch.expired:
            _this_task().uncancel()  # it finished all the same: a finished step keeps its outcome
        try:
            output = Raw(self._codec.encode(value))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # Made again it would be as wrong, and its effect would have happened twice.
            return self._failed(order, _unrecordable(order, error), permanent=True)
        return NodeCompleted(task, node, number, output)

    def _watch(self, step: StepContext, limit: int) -> Watch:
        """From here on the attempt is cancelled when its time is over."""
        task = _this_task()

        def expired() -> None:
            step.canceled = True
            task.cancel()

        return self._timeouts.watch(limit / SECOND, expired)

    def _canceled(
        self, order: Order, limit: int, error: BaseException, *, timed_out: bool
    ) -> NodeFailed | None:
        task = _this_task()
        if timed_out:
            task.uncancel()
        if task.cancelling():  # dropped, or the engine stops
            return None
        if timed_out:
            return self._failed(order, _timed_out(order, limit / SECOND), permanent=False)
        return self._failed(order, Failure(str(error), kind="CancelledError"), permanent=False)

    def _revealed(self, input: Any, secrets: Mapping[str, str]) -> Any:
        if self._reveal is None:
            raise Failure("this engine has no secrets: pass Engine(secrets=...)")
        return self._reveal(input, secrets)

    def _failed(self, order: Order, error: BaseException, *, permanent: bool) -> NodeFailed:
        redact = self._redact or str
        failure = record_failure(error, permanent=permanent, redact=redact)
        if self._redact is not None:
            failure = _redacted(failure, self._redact)
        if not isinstance(error, Failure):
            self._log_traceback(order, error)
        return NodeFailed(order.task, order.node, order.number, failure)

    def _log_traceback(self, order: Order, error: BaseException) -> None:
        """The journal keeps kind and message; where it went wrong is for the log, without
        secrets."""
        if not _log.isEnabledFor(logging.WARNING):
            return
        text = _traceback(error)
        _log.warning(
            "%s/%s: attempt %d of node %s failed\n%s",
            order.workflow,
            order.run_id,
            order.number + 1,
            order.node,
            self._redact(text) if self._redact is not None else text,
        )


def logger_of(step: StepContext) -> logging.Logger:
    """The logger of a step: `perdure.steps.<workflow>.<node>`."""
    name = f"perdure.steps.{step.workflow}.{step.node}"
    return _LOGGERS.setdefault(name, logging.getLogger(name))


class _EngineStep(StepContext):
    on_logger = staticmethod(logger_of)


def _retries(handler: Handler, attempt: Attempt, error: BaseException) -> bool:
    """What the step's own retry_on/never_on say; a predicate that raises says no."""
    if not isinstance(error, Exception):
        return True
    try:
        return handler.retries(attempt, error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        _log.error(  # not what it raised: that may show a secret
            "retry_on of node %s raised; its failure counts as permanent", attempt.node
        )
        return False


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # of the error's own making, too
        return "(its traceback cannot be read)"


def _expired(watch: Watch | None) -> bool:
    return watch is not None and watch.expired


def _timed_out(order: Order, seconds: float) -> TimedOut:
    return TimedOut(
        f"attempt {order.number + 1} of node {order.node} took longer than {seconds:g} s"
    )


def _unrecordable(order: Order, error: BaseException) -> InvalidRequest:
    kind = type(error) if isinstance(error, InvalidRequest) else InvalidRequest
    why = record_failure(error).message
    return kind(f"the output of node {order.node} cannot be recorded: {why}")


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _redacted(failure: FailureRecord, redact: Callable[[str], str]) -> FailureRecord:
    details = failure.details
    if details is not None:
        text = redact(msgspec.json.encode(details).decode())
        try:
            details = msgspec.json.decode(text)
        except msgspec.DecodeError:  # the secret was a number, or a part of one
            details = text
    return msgspec.structs.replace(failure, message=redact(failure.message), details=details)
