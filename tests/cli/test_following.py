"""Following a run that others work on: each look reads on from what was told, and nothing again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from perdure.cli import watch
from perdure.cli.nodes import NodeBook
from perdure.cli.progress import Progress
from tests.cli.test_progress import Heard

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


class Growing:
    """A run to which a row is added at each look, until it has ended with the last."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.looks = 0
        self.asked: list[int] = []

    async def _row(self) -> Any:
        self.looks += 1
        ended = self.looks >= self.rows
        return SimpleNamespace(
            status="completed" if ended else "running", stalled=None, owner="w", epoch=1, mail=0
        )

    async def history(self, *, after: int = 0) -> AsyncIterator[Mapping[str, Any]]:
        self.asked.append(after)
        for seq in range(after + 1, min(self.looks, self.rows) + 1):
            yield {
                "do": "CreateTask", "seq": seq, "time": NOW, "node": f"n{seq}",
                "status": "skipped",
            }  # fmt: skip


def test_each_look_reads_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK", 0)
    heard = Heard()
    run: Any = Growing(5)
    asyncio.run(watch._follow(run, Progress("order", "1", NodeBook(), heard)))
    assert run.asked == [0, 0, 2, 3, 4, 5]
    assert heard.changes == [f"n{seq} skipped" for seq in range(1, 6)]
