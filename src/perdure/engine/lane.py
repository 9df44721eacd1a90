"""Lane: rows gather while a batch is being written, and go together in the next one.

Natural group commit: an idle lane writes at once, a busy one lets rows collect. Whoever submits
is told its own row's answer. When the store fails, the same batch is sent again with growing
delays until its outcome is known; nothing newer is sent before. A batch that fails for a reason
that trying again cannot mend is halved, down to the one row that cannot be written.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from perdure.model.errors import StoreError

Row = TypeVar("Row")
Answer = TypeVar("Answer")

_log = logging.getLogger("perdure.engine")

FIRST_DELAY, LONGEST_DELAY = 0.05, 5.0
#: How many answers are told before what follows from them has its turn.
PART = 64
_FAILED: Final = "what follows from a row that was written failed"

_NOTHING: Final = object()

Then = Callable[[Any], None]
Send = Callable[[Sequence[Row], Callable[[Sequence[Answer] | Exception], None]], None]


def _never() -> bool:
    return False


class Lane(Generic[Row, Answer]):
    """One batch under way at a time. A row that has nothing to gain from waiting for company is
    written at once: where the store answers before `send` returns (`at_once`), or nobody else is
    there to write (`alone`)."""

    def __init__(
        self,
        send: Send[Row, Answer],
        *,
        at_once: bool = False,
        alone: Callable[[], bool] = _never,
        most: int = 512,
        note: Callable[[StoreError | None], None] | None = None,
    ) -> None:
        """`note` is told when the store does not answer, and (None) when it does again."""
        self._send = send
        self._at_once = at_once
        self._note = note
        self._alone = alone
        self._most = most
        self._waiting: list[tuple[Row, Then]] = []
        self._batches: list[list[tuple[Row, Then]]] = []
        self._under_way: list[tuple[Row, Then]] | None = None
        self._scheduled = False
        self._delay = FIRST_DELAY
        self._idle: list[asyncio.Future[None]] = []
        self._retry: asyncio.TimerHandle | None = None
        #: Of a row sent alone: what came while it was being sent; the row, if nothing did.
        self._came: Any = None
        self._lone: list[tuple[Row, Then]] | None = None
        #: Answers that have come and are not told yet.
        self._untold: deque[tuple[Then, Answer]] = deque()

    def submit(self, row: Row, then: Then) -> None:
        """Queue a row. `then` is called with the store's answer, or with the exception when this
        row can never be written."""
        answer = self.write(row, then)
        if answer is not None:
            tell(then, answer)

    def write(self, row: Row, then: Then) -> Answer | None:
        """The same; an answer that is there at once is returned, and `then` not called."""
        waiting = self._waiting
        if self._under_way is None and not (self._scheduled or waiting or self._batches):
            if self._at_once or self._alone():
                return self._write_alone(row, then)
            waiting.append((row, then))
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            waiting.append((row, then))
            if not self._scheduled:
                self._go_on()
            elif len(waiting) >= self._most and self._under_way is None:
                self._flush()  # a whole batch: the store may begin while others are decided
        return None

    def _write_alone(self, row: Row, then: Then) -> Answer | None:
        """Write a row for whose answer nobody has to wait, most often."""
        self._under_way = alone = [(row, then)]
        self._came = _NOTHING
        try:
            self._send((row,), self._took)
        except Exception as error:
            self._took(error)
        came, self._came = self._came, None
        if came is _NOTHING:  # yet
            self._lone = alone
            return None
        if isinstance(came, Exception) or self._untold:
            self._answered(alone, came)
            return None
        self._under_way = None
        if self._waiting or self._idle:
            self._go_on()
        answer: Answer = came[0]
        return answer

    def _took(self, answers: Sequence[Answer] | Exception) -> None:
        """What a row that was sent alone is answered: while `_write_alone` looks, or later."""
        if self._came is _NOTHING:
            self._came = answers
        elif (lone := self._lone) is not None:
            self._lone = None
            self._answered(lone, answers)

    async def drain(self) -> None:
        """Return when everything submitted so far has been answered."""
        while self._waiting or self._under_way is not None or self._batches or self._untold:
            future = asyncio.get_running_loop().create_future()
            self._idle.append(future)
            await future

    def abandon(self) -> None:
        """Stop trying: what is not durable is as if it had never been decided."""
        if self._retry is not None:
            self._retry.cancel()
        self._waiting.clear()
        self._batches.clear()
        self._untold.clear()
        self._under_way = self._lone = None
        # The answer to a row sent alone, should it still come, must be nobody else's.
        self._at_once, self._alone = False, _never
        self._wake_idle()

    def _flush(self) -> None:
        self._scheduled = False
        while self._under_way is None and (self._batches or self._waiting):
            if self._batches:
                batch = self._batches.pop()
            else:
                batch = self._waiting[: self._most]
                del self._waiting[: self._most]
            self._write(batch)
        # Stores may answer before `send` returns, and the last answer finds a flush scheduled.
        if self._under_way is None:
            self._wake_idle()

    def _write(self, batch: list[tuple[Row, Then]]) -> None:
        self._under_way = batch
        answered = partial(self._answered, batch)
        try:
            if len(batch) == 1:
                self._send((batch[0][0],), answered)
            else:
                self._send([row for row, _ in batch], answered)
        except Exception as error:
            answered(error)

    def _answered(
        self, batch: list[tuple[Row, Then]], answers: Sequence[Answer] | Exception
    ) -> None:
        if self._under_way is not batch:  # abandoned meanwhile
            return
        if isinstance(answers, Exception):
            self._failed(batch, answers)
        else:
            self._under_way = None
            if self._delay > FIRST_DELAY:
                self._delay = FIRST_DELAY
                if self._note is not None:
                    self._note(None)
            if len(batch) == 1 and not self._untold:
                try:
                    batch[0][1](answers[0])
                except Exception:
                    _log.exception(_FAILED)
            elif len(batch) <= PART and not self._untold:
                for (_, then), answer in zip(batch, answers, strict=True):
                    tell(then, answer)
            else:
                self._tell_by_parts(batch, answers)
        if self._waiting or self._batches or self._idle:
            self._go_on()

    def _tell_by_parts(self, batch: list[tuple[Row, Then]], answers: Sequence[Answer]) -> None:
        """Many answers at once: what follows from some is done before the next are told, so that
        few runs are at work at a time. The store goes on meanwhile."""
        untold, telling = self._untold, bool(self._untold)
        untold.extend(zip((then for _, then in batch), answers, strict=True))
        if self._waiting or self._batches:
            self._flush()
        if not telling:
            self._tell_some()

    def _tell_some(self) -> None:
        untold = self._untold
        try:
            for _ in range(PART):
                if not untold:
                    break
                tell(*untold.popleft())
        finally:
            if untold:
                asyncio.get_running_loop().call_soon(self._tell_some)
        if self._idle and not untold:
            self._go_on()

    def _failed(self, batch: list[tuple[Row, Then]], error: Exception) -> None:
        if isinstance(error, StoreError):
            self._try_again(batch, error)
        else:
            self._under_way = None
            self._halve(batch, error)

    def _go_on(self) -> None:
        if self._under_way is not None or self._scheduled:
            return
        if self._waiting or self._batches:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._wake_idle()

    def _try_again(self, batch: list[tuple[Row, Then]], error: StoreError) -> None:
        delay, self._delay = self._delay, min(self._delay * 2, LONGEST_DELAY)
        if self._note is not None:
            self._note(error)
        loop = asyncio.get_running_loop()
        self._retry = loop.call_later(delay, self._write, batch)

    def _halve(self, batch: list[tuple[Row, Then]], error: Exception) -> None:
        if len(batch) == 1:
            try:
                batch[0][1](error)
            except Exception:
                _log.exception("what follows from a row that cannot be written failed")
            return
        middle = len(batch) // 2
        self._batches += [batch[middle:], batch[:middle]]

    def _wake_idle(self) -> None:
        for future in self._idle:
            if not future.done():
                future.set_result(None)
        self._idle.clear()


def tell(then: Then, answer: Any) -> None:
    """Call it, whatever it raises."""
    try:
        then(answer)
    except Exception:
        # One that cannot take its answer must not keep the others from theirs.
        _log.exception(_FAILED)
