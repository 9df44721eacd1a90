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
from msgspec import Raw

from perdure.codec.failures import record_failure
from perdure.engine.attempts.ends import Report, ends_process
from perdure.engine.attempts.orders import EngineStep, Order
from perdure.engine.attempts.stepping import Waiting, as_failure, first_part
from perdure.engine.attempts.timeouts import Timeouts
from perdure.engine.attempts.untold import tells_nothing
from perdure.engine.clock import Clock
from perdure.engine.handlers.port import Attempt, Given, Handler, StepNotRegistered
from perdure.engine.shielded import shielded
from perdure.kernel.events import NodeCompleted, NodeFailed
from perdure.kernel.plan import UNDO
from perdure.kernel.protocol import Codec
from perdure.model.durations import SECOND
from perdure.model.errors import Failure, InvalidRequest, TimedOut
from perdure.model.failure import FailureRecord

_log = logging.getLogger("perdure.engine")

#: Of `first_part`, and of what stands around it.
First = Callable[..., tuple[Coroutine[Any, Any, Any], Any]]

_NULL: Final = Raw(b"null")


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
        self._codec = codec
        self.clock = clock
        self._timeouts = timeouts
        self.resources = resources
        self._reveal = reveal
        self._redact = redact

    def begin(self, order: Order, first: First = first_part) -> Report | Waiting | None:
        """Carry the attempt out in the calling task until it first waits: how it ended, or what is
        to be driven on in that task. `first` does what `first_part` does, for somebody who looks
        on."""
        handler = self.handlers[order.type]
        if order.stored is not None:
            try:
                order.input = self._codec.decode(order.stored)
                if order.secrets:
                    order.input = self._revealed(order.input, order.secrets)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                return self._failed(order, error, permanent=True)
        step = EngineStep(order, self.resources, _times=self)
        if self.on_started is not None:
            shielded(self.on_started, order)
        context = copy_context()
        try:
            steps, waiting_for = context.run(first, handler.run, order, step)
        except StopIteration as stop:
            return self._completed(order, stop.value)
        except BaseException as error:
            return self._ended_badly(order, step, error)
        waiting = Waiting(order, step, self, steps, context, waiting_for)
        if limit := step.begin_time():
            self._timeouts.watch(waiting, limit)
        return waiting

    def returned(self, attempt: Waiting, value: Any) -> Report:
        """See Ends.returned."""
        if attempt.queue is not None:  # closed(), without a call for each step
            attempt.queue.pop(attempt, None)
        if attempt.expired:
            _this_task().uncancel()  # it finished all the same: a finished step keeps its outcome
        return self._completed(attempt.order, value)

    def raised(self, attempt: Waiting, error: BaseException) -> NodeFailed | None:
        """See Ends.raised."""
        self.closed(attempt)
        if isinstance(error, GeneratorExit):
            error = as_failure(error)
        return self._ended_badly(attempt.order, attempt.step, error, timed_out=attempt.expired)

    def closed(self, attempt: Waiting) -> None:
        """See Ends.closed. Its time is nobody's business any more."""
        if attempt.queue is not None:
            attempt.queue.pop(attempt, None)

    def _completed(self, order: Order, value: Any) -> Report:
        """What an attempt that returned comes to."""
        # As they are now: what the step left behind may note more before the row is written.
        notes = dict(order.noted) if order.noted else None
        if value is None:
            return NodeCompleted(order.task, order.node, order.number, _NULL, notes)
        write: Callable[[Any], bytes | Raw] = self._codec.encode
        if type(value) is Given:
            value, write = value.output, value.write
        try:
            output = Raw(write(value))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            why = _unrecordable(order, error)
            if not order.node.endswith(UNDO):
                # Made again it would be as wrong, and its effect would have happened twice.
                return self._failed(order, why, permanent=True, unknown=True)
            _log.warning("%s/%s: %s; it is undone all the same", order.workflow, order.run_id, why)
            output = _NULL
        return NodeCompleted(order.task, order.node, order.number, output, notes)

    def _ended_badly(
        self, order: Order, step: EngineStep, error: BaseException, *, timed_out: bool = False
    ) -> NodeFailed | None:
        """What an attempt that raised comes to. Raises what is not the attempt's own."""
        if isinstance(error, asyncio.CancelledError):
            step.canceled = True
            return self._canceled(order, step, error, timed_out=timed_out)
        if isinstance(error, GeneratorExit) or _never_ran(order, error):
            raise error
        if ends_process(error):
            _tell_exit(order, error)
            raise error
        if timed_out and _this_task().cancelling():
            # Its time was over, and it answered with an error of its own.
            _this_task().uncancel()
            return self._failed(order, _timed_out(order, step), permanent=False, unknown=True)
        # Stopped in the middle, it may say what it likes.
        unknown = timed_out or tells_nothing(error) or _this_task().cancelling() > 0
        if not isinstance(error, Exception):
            cause, error = error, Failure(self._said(error), kind=type(error).__name__)
            error.__cause__ = cause
        permanent = not _retries(self.handlers[order.type], order, error)
        return self._failed(order, error, permanent=permanent, unknown=unknown)

    def _canceled(
        self, order: Order, step: EngineStep, error: BaseException, *, timed_out: bool
    ) -> NodeFailed | None:
        task = _this_task()
        if timed_out:
            task.uncancel()
        if task.cancelling():  # dropped, or the engine stops
            return None
        failure = (
            _timed_out(order, step)
            if timed_out
            else Failure(self._said(error), kind="CancelledError")
        )
        return self._failed(order, failure, permanent=False, unknown=True)

    def _said(self, error: BaseException) -> str:
        """What it says, if it can: to ask it is to run users' code."""
        return record_failure(error, redact=self._redact or str).message

    def _revealed(self, input: Any, secrets: Mapping[str, str]) -> Any:
        if self._reveal is None:
            raise Failure("this engine has no secrets: pass Engine(secrets=...)")
        return self._reveal(input, secrets)

    def _failed(
        self, order: Order, error: BaseException, *, permanent: bool, unknown: bool = False
    ) -> NodeFailed:
        # It may have been begun before this time, and of that nobody heard.
        unknown = unknown or order.again or order.before
        redact = self._redact or str
        failure = record_failure(error, permanent=permanent, redact=redact)
        if self._redact is not None:
            failure = _redacted(failure, self._redact)
        if not isinstance(error, Failure):
            self._log_traceback(order, error)
        # None and not False: a failure may say it by its kind alone (kernel.untold).
        return NodeFailed(order.task, order.node, order.number, failure, unknown or None)

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


def _retries(handler: Handler, attempt: Attempt, error: Exception) -> bool:
    """What the step's own retry_on/never_on say; a predicate that raises says no."""
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


def _never_ran(order: Order, error: BaseException) -> bool:
    """Whether the handler says that nothing of the step is here to run; a step's code may raise
    the same, of another engine's attempt."""
    return isinstance(error, StepNotRegistered) and error.attempt is order


def _tell_exit(order: Order, error: BaseException) -> None:
    if isinstance(error, SystemExit):  # an interrupt is nothing that the step's code does
        _log.error(
            "%s/%s: node %s ends the process, at attempt %d: SystemExit(%r). A step ends by "
            "returning or by raising an Exception; the attempt has no outcome and is made again",
            order.workflow, order.run_id, order.node, order.number + 1, error.code,
        )  # fmt: skip


def _timed_out(order: Order, step: EngineStep) -> TimedOut:
    seconds = (step.limit or 0) / SECOND
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
