"""CrashingStore: a store whose process dies at the n-th write, before it or after it, always
unanswered.

A write is a batch of rows or of starts, mail that is posted, a run that is parked or claimed for a
retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

When = Literal["before", "after"]


class CrashingStore:
    """Counts all writes together, from 1. From the crash on nothing is written or answered."""

    def __init__(self, inner: Any, at: int = 0, when: When = "before") -> None:
        self.inner = inner
        self.durable = inner.durable
        self.writes = 0
        #: How many runs were let go, and heard of it.
        self.parked = 0
        self.crashed = asyncio.Event()
        #: What was being written at the crash: rows, runs, or what a call was given.
        self.lost: Sequence[Any] = ()
        self._at = at
        self._when = when

    def commit(self, rows: Sequence[Any], done: Any) -> None:
        self._write(self.inner.commit, rows, done)

    def start(self, runs: Sequence[Any], done: Any) -> None:
        self._write(self.inner.start, runs, done)

    def _write(self, write: Any, rows: Sequence[Any], done: Any) -> None:
        if self.crashed.is_set():
            return
        self.writes += 1
        if self.writes != self._at:
            write(rows, lambda answer: None if self.crashed.is_set() else done(answer))
            return
        self.lost = rows
        if self._when == "before":
            self.crashed.set()
        else:
            write(rows, lambda answer: self.crashed.set())

    async def post(self, *args: Any) -> Any:
        return await self._call(self.inner.post, *args)

    async def park(self, *args: Any) -> Any:
        answers = await self._call(self.inner.park, *args)
        self.parked += sum(answers)
        return answers

    async def claim_finished(self, *args: Any) -> Any:
        return await self._call(self.inner.claim_finished, *args)

    async def _call(self, write: Any, *args: Any) -> Any:
        answer = None
        if not self.crashed.is_set():
            self.writes += 1
            crashes = self.writes == self._at
            if not (crashes and self._when == "before"):
                answer = await write(*args)
            if crashes:
                self.lost = args
                self.crashed.set()
        if self.crashed.is_set():
            await asyncio.Event().wait()
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
