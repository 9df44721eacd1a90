"""Call: one thing a workflow's code asked for, and the future that its outcome resolves.

A call gets its node id when it is made, by call order of its name; it is recorded when it is
first awaited. A future that the code cancels (a timeout, a cancelled task, a lost race) gives its
calls up in the same transition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias

import msgspec
from msgspec import Raw

from perdure.kernel.protocol import Handling
from perdure.model.policy import NO_RETRY, RetryPolicy

if TYPE_CHECKING:
    from perdure.kernel.code.loop import WorkflowLoop

STEP: Final = "step"
WAIT: Final = "wait"
#: Another run's end is awaited, or only that it is there.
CHILD: Final = "child"
SPAWN: Final = "spawn"


class How(Handling, frozen=True, gc=False):
    """How a step call's attempts are executed, and repeated. `step` is what the engine runs, and
    means nothing here."""

    policy: RetryPolicy = NO_RETRY
    queue: str | None = None


class Child(msgspec.Struct, frozen=True, gc=False):
    """The run that a call asks for. `start` is what the engine starts, and means nothing here.
    `former`: what the call would be, its node and the run, if the definition still had a name that
    it had before: so it may be recorded."""

    definition: str
    id: str
    start: Any
    former: tuple[tuple[str, Child], ...] = ()


class Call(msgspec.Struct, eq=False):
    """`input`: what is recorded of the arguments. `signal`, `due`: of a wait, what ends it.
    `index`: its place among the cases of the wait it belongs to. `cleaning`: it was asked for to
    take back or to tidy up, and is tried again also while the run is stopping."""

    node: str
    kind: str
    input: Raw | None = None
    how: How | None = None
    task: str = ""
    #: While it is awaited and has no outcome.
    future: CallFuture | None = None
    #: See StepFuture.
    first: ClassVar[bool] = False
    signal: str | None = None
    due: int | None = None
    index: int = 0
    child: Child | None = None
    #: Of a call that is replayed, where its arguments may be recorded in another form: that, and
    #: how a call recorded so is executed.
    other: Callable[[], tuple[Raw, How] | None] | None = None
    cleaning: bool = False
    #: See CreateTask.undoes.
    undoes: str | None = None


class CallFuture(asyncio.Future[Any]):
    """Resolves with a step's output (Raw), or with (index, payload or None) of the case that
    ended a wait."""

    __slots__ = ("members",)
    members: tuple[Call, ...]

    def cancel(self, msg: Any = None) -> bool:
        """The code does not want the outcome any more: its calls are given up."""
        if not super().cancel(msg):
            return False
        loop: Any = self.get_loop()
        if loop.alive:
            loop.calls.given_up(self.members)
        return True


class StepFuture(CallFuture):
    """A step's call that is its own future: of most calls nothing else is to be kept. It was asked
    for live, with nothing around it that has to know, and its first attempt has not ended. It has
    what a Call has; what it lets a Call say is the same for all of them."""

    __slots__ = ("how", "node", "task")
    node: str
    how: How
    task: str
    first: ClassVar[bool] = True
    kind: ClassVar[str] = STEP
    signal: ClassVar[None] = None
    child: ClassVar[None] = None
    cleaning: ClassVar[bool] = False

    @property
    def future(self) -> Self:
        """What its outcome resolves."""
        return self

    @property
    def members(self) -> tuple[Any, ...]:  # type: ignore[override]  # there is no other
        """The calls that it resolves."""
        return (self,)

    def again(self) -> Call:
        """The call from its second attempt on."""
        return Call(self.node, STEP, None, self.how, self.task, self)


AnyCall: TypeAlias = Call | StepFuture


def future_of(loop: WorkflowLoop, members: tuple[Call, ...]) -> CallFuture:
    """A future for these calls. An `__init__` of its own would double what it costs."""
    future = CallFuture(loop=loop)
    future.members = members
    return future
