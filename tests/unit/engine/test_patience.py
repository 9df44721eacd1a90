"""Patience: a row waits for company where commits keep the loop and somebody may come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest

from perdure.engine import lane as lanes
from perdure.engine.lane import Lane
from perdure.engine.patience import LONGEST, Patience
from tests.virtual.loop import run, settle


def taught(seconds: float) -> Patience:
    """One that has seen many commits of this length."""
    patience = Patience()
    for _ in range(100):
        patience.wrote(seconds)
    return patience


def test_nothing_waits_before_commits_were_seen_to_take_time() -> None:
    assert Patience().window() == 0.0
    assert taught(0.00001).window() == 0.0


def test_a_row_waits_as_long_as_a_few_commits_take_and_never_long() -> None:
    assert taught(0.0002).window() == pytest.approx(0.0008, rel=0.01)
    assert taught(0.1).window() == LONGEST


def test_waits_that_bring_nobody_are_given_up_for_a_while_and_tried_again() -> None:
    patience = taught(0.0002)
    waits = 0
    while patience.window():
        patience.waited(0)
        waits += 1
        assert waits < 20
    rest = next(n for n in count(1) if patience.window())
    assert 10 < rest < 1_000


def test_waits_that_bring_others_go_on() -> None:
    patience = taught(0.0002)
    for _ in range(1_000):
        assert patience.window()
        patience.waited(2)


class AtOnce:
    """A store that answers while it is asked, and takes a millisecond for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1.0
        self.batches: list[list[str]] = []
        self.at: list[float] = []
        monkeypatch.setattr(lanes, "perf_counter", lambda: self.now)

    def send(self, rows: Sequence[str], done: Callable[[Any], None]) -> None:
        self.now += 0.001
        self.batches.append(list(rows))
        self.at.append(asyncio.get_running_loop().time())
        done(list(rows))


def test_rows_that_come_soon_after_one_another_share_a_commit_while_attempts_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        store = AtOnce(monkeypatch)
        company = False
        lane: Lane[str, str] = Lane(store.send, company=lambda: company)
        for _ in range(50):
            lane.submit("alone", lambda answer: None)
            await settle()
        assert store.batches == [["alone"]] * 50
        company = True
        began = asyncio.get_running_loop().time()
        lane.submit("a", lambda answer: None)
        await asyncio.sleep(LONGEST / 2)
        lane.submit("b", lambda answer: None)
        await lane.drain()
        assert store.batches[50:] == [["a", "b"]]
        assert store.at[-1] - began == pytest.approx(LONGEST)

    run(main())


def test_a_whole_batch_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        store = AtOnce(monkeypatch)
        lane: Lane[str, str] = Lane(store.send, most=2)
        lane.submit("a", lambda answer: None)
        assert store.batches == []
        lane.submit("b", lambda answer: None)
        assert store.batches == [["a", "b"]]
        lane.submit("c", lambda answer: None)
        await lane.drain()
        assert store.batches == [["a", "b"], ["c"]]

    run(main())
