"""Whenever the demo is stopped, no process of its is left."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from perdure.cli.demo.stopping import SIGNALS, Processes

SLEEPS = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def processes() -> Iterator[Processes]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    made = Processes()
    made.stop_once()
    yield made
    made.end_all()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_a_process_begins_stops_the_demo_once_it_is_known(
    processes: Processes, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def interrupted(*words: Any, **how: Any) -> subprocess.Popen[bytes]:
        begun.append(popen(*words, **how))
        signal.raise_signal(number)
        return begun[0]

    with monkeypatch.context() as patch:
        patch.setattr("perdure.cli.demo.stopping.subprocess.Popen", interrupted)
        with pytest.raises(KeyboardInterrupt):
            processes.begin(SLEEPS)
    processes.end_all()
    assert begun[0].returncode == -signal.SIGKILL


def test_at_any_other_moment_the_first_signal_stops_it_at_once_and_no_other_does(
    processes: Processes,
) -> None:
    process = processes.begin(SLEEPS)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)
    assert process.poll() is None
    processes.end_all()
    assert process.returncode == -signal.SIGKILL


def test_one_that_has_ended_is_let_be(processes: Processes) -> None:
    process = processes.begin([sys.executable, "-c", ""])
    assert process.wait() == 0
    processes.end_all()
    assert process.returncode == 0
