"""Undo: what a workflow has done, taken back in reverse order of completion when it fails.

A step that is under way when the failure or the cancel comes is waited for: its effect may yet
happen, and is then undone with the rest (stop before undo). A cancel that comes while it is being
undone changes nothing but the end, and undos are tried again by their own policies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar

from perdure.kernel.code.scopes import EARLIER, SCOPE, Scope
from perdure.kernel.code.stuck import ContinueAsNew, Evicted
from perdure.model.errors import Failure

if TYPE_CHECKING:
    from perdure.flow.step import Step
    from perdure.kernel.code.calls import Calls

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

#: Ways out of a saga by which nothing has failed.
_NO_FAILURE: Final = (GeneratorExit, Evicted, ContinueAsNew)

Undoing = Callable[[], Coroutine[Any, Any, Any]]


class _Made:
    """The calls made in a scope, in order. `place`: where the first of them stands among those of
    the scope around. Once it is `over`, what is made in its context is not made in it: a context
    is never set back, since code that is let go of leaves its scopes in somebody else's. `within`:
    the scope it is entered in, which says whether what is called in it takes something back."""

    around: Scope | None
    over: bool

    def __init__(self, around: Scope | None, within: Scope | None) -> None:
        self.cleaning = within is not None and within.cleaning
        self.undoes = None if within is None else within.undoes
        while isinstance(around, _Made) and around.over:
            around = around.around
        self.around = around
        self.nodes: list[str] = []
        self.place = 0
        self.over = False

    def made(self, node: str, /) -> None:
        """See Scope.made."""
        around = self.around
        if not self.over:
            if not self.nodes and isinstance(around, _Made):
                self.place = len(around.nodes)
            self.nodes.append(node)
        if around is not None:
            around.made(node)


class Undo:
    """`async with ctx.saga() as saga:`; leaving it by an exception or a cancel undoes."""

    def __init__(self, logger: logging.LoggerAdapter[logging.Logger], calls: Calls) -> None:
        self._logger = logger
        self._calls = calls
        self._undos: list[Undoing] = []
        self._made = _Made(None, None)
        #: What each undo is of, where that is said.
        self._of: list[_Made | None] = []
        #: Whether one of them may be of a call before the scope: it was said before any call in it.
        self._earlier = False
        #: Undos that failed for good: somebody must look.
        self.failed: list[Exception] = []

    def undo(self, step: Step[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Undo by this call, should it come to that."""
        if not self._made.nodes and self._calls.made:
            self._earlier = True
        self._keep(partial(step, *args, **kwargs), None)

    async def run(
        self,
        step: Callable[[T], Coroutine[Any, Any, R]],
        input: T,
        /,
        *,
        undo: Callable[[R], Coroutine[Any, Any, Any]],
    ) -> R:
        """Run a step whose undo takes its result. Raises what the step raises."""
        made, context = _Made(self._made, SCOPE.get()), copy_context()
        context.run(SCOPE.set, made)
        task = context.run(asyncio.ensure_future, step(input))
        canceled = await _ended(task)
        if canceled is None:
            result = await task
            self._keep(partial(undo, result), made)
            return result
        # It may have taken effect all the same: then it is undone with the rest.
        if not task.cancelled():
            with suppress(Failure):
                self._keep(partial(undo, task.result()), made)
        raise canceled

    def _keep(self, undo: Undoing, of: _Made | None) -> None:
        self._undos.append(undo)
        self._of.append(of)

    def _first_undone(self) -> str | None:
        """The first call of which something may be taken back: where nobody says which one an undo
        is of, it may be any."""
        if self._earlier:
            return EARLIER
        place = min((0 if of is None else of.place for of in self._of), default=0)
        nodes = self._made.nodes
        return nodes[place] if place < len(nodes) else None

    async def __aenter__(self) -> Self:
        around = SCOPE.get()
        self._made = _Made(around, around)
        SCOPE.set(self._made)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._made.over = True
        if error is None or isinstance(error, _NO_FAILURE):
            return
        canceled = await _ended(asyncio.ensure_future(self._undo_all()))
        if canceled is not None:
            raise canceled

    async def _undo_all(self) -> None:
        around = SCOPE.get()
        undoing = _Made(around, around)
        undoing.over = True  # what is called now belongs to what is around alone
        undoing.cleaning, undoing.undoes = True, self._first_undone()
        SCOPE.set(undoing)
        while self._undos:
            try:
                await self._undos.pop()()
            except Exception as failure:
                self.failed.append(failure)
                self._logger.error("an undo failed and somebody must look: %s", failure)


async def _ended(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    """Wait until a task has ended, whatever is cancelled meanwhile; the last cancel that came."""
    canceled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            canceled = error
    return canceled
