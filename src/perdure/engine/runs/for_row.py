"""ForRow: a runner of a run's waits for the row under way, which says what is next."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from perdure.engine.attempts.part import OVER

if TYPE_CHECKING:
    from perdure.engine.attempts.part import Part
    from perdure.engine.runs.runners import Runners


class ForRow(msgspec.Struct, eq=False):
    """Waits, in a task of a run's, until its row under way is durable: a Part."""

    runners: Runners
    task: asyncio.Task[None]
    future: asyncio.Future[None]

    def wake(self) -> None:
        """Look again."""
        if not self.future.done():
            self.future.set_result(None)

    def first(self) -> Any:
        """See Part.first."""
        return next(self.future.__await__())

    def send(self, value: Any) -> Any:
        """See Part.send."""
        if self.runners.still_waits:
            self.future = asyncio.get_running_loop().create_future()
            return self.first()
        self.runners.waiter = None
        return OVER

    def throw(self, error: BaseException) -> Any:
        """See Part.throw."""
        self.close()
        self.runners.start()  # one of them may have been meant for this runner
        raise error

    def close(self) -> None:
        """See Part.close."""
        self.runners.waiter = None

    def following(self) -> Part | None:
        """See Part.following."""
        return self.runners.next_part(self.task)
