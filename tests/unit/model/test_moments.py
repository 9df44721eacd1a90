"""Times in µs and as Python's own: exactly, both ways; and where they are counted from, once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import perdure
from perdure.client.client import Client
from perdure.model.moments import moment, since_epoch
from perdure.stores.answers import RunRow
from perdure.stores.memory import MemoryStore
from perdure.stores.port import RunQuery

#: Times whose seconds, as a float, are not those µs.
ODD = [1_700_000_000_000_001, 1_793_000_123_456_789, 2_151_919_075_141_359, -1, 0]


@pytest.mark.parametrize(
    "microseconds", [*ODD, *range(1_793_000_000_000_003, 1_793_000_000_000_023)]
)
def test_a_time_is_the_same_there_and_back(microseconds: int) -> None:
    time = moment(microseconds)
    assert time.tzinfo is UTC
    assert since_epoch(time) == microseconds
    assert since_epoch(time.astimezone(timezone(timedelta(hours=-3)))) == microseconds


def test_a_time_without_a_zone_is_none() -> None:
    with pytest.raises(TypeError):
        since_epoch(datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_epoch_is_written_once() -> None:
    package = Path(perdure.__file__).parent
    written = [path.name for path in package.rglob("*.py") if "1970, 1, 1" in path.read_text()]
    assert written == ["moments.py"]


def test_runs_are_asked_for_by_a_time_to_the_microsecond() -> None:
    class Asked(MemoryStore):
        async def find(self, query: RunQuery) -> Sequence[RunRow]:
            asked.append(query.created_after)
            return []

    async def main() -> None:
        async with Client(Asked()) as client:
            for microseconds in ODD:
                assert [r async for r in client.runs(created_after=moment(microseconds))] == []

    asked: list[int | None] = []
    asyncio.run(main())
    assert asked == ODD
