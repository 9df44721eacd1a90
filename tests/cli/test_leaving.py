"""A command that ends while the thread of a step does not."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click
import pytest

from perdure.cli.leave import leave, step_threads


@contextmanager
def step_under_way() -> Iterator[None]:
    """A thread as steps have them, which ends with the block."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="perdure-step-1", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The codes with which the process would have been ended at once."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    return codes


def left(others: frozenset[threading.Thread]) -> int:
    """The exit code of a command that leaves with 4."""
    with click.Context(click.Command("run")), pytest.raises(click.exceptions.Exit) as caught:
        leave(4, others)
    return caught.value.exit_code


@pytest.mark.slow
def test_the_thread_of_its_own_step_keeps_no_command_from_ending(ended: list[int]) -> None:
    others = step_threads()
    with step_under_way():
        assert left(others) == 4
    assert ended == [4]


def test_threads_of_other_peoples_steps_are_none_of_its_business(ended: list[int]) -> None:
    with step_under_way():
        assert left(step_threads()) == 4
    assert ended == []
