"""Threads of `def` steps: reused, bounded, in order, and never in the way of an exit."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import wait

import pytest

from perdure.engine.handlers.threads import Threads


def test_a_thread_is_kept_for_the_next_call() -> None:
    threads = Threads(4)
    first = threads.submit(threading.get_ident).result(5)
    for _ in range(20):
        # The thread says that it is idle just after it has answered.
        while not threads._idle._value:
            pass
        assert threads.submit(threading.get_ident).result(5) == first
    threads.close()


def test_no_more_calls_run_at_a_time_than_are_allowed_and_the_rest_follow_in_order() -> None:
    threads = Threads(2)
    go, begun = threading.Event(), []

    def call(n: int) -> int:
        begun.append(n)
        go.wait(5)
        return n

    futures = [threads.submit(lambda n=n: call(n)) for n in range(5)]  # type: ignore[misc]
    while len(begun) < 2:
        pass
    assert begun == [0, 1]
    go.set()
    assert [future.result(5) for future in futures] == list(range(5))
    threads.close()


def test_a_call_that_waits_can_be_cancelled_and_what_raises_answers() -> None:
    threads = Threads(1)
    go = threading.Event()
    first, second = threads.submit(lambda: go.wait(5)), threads.submit(lambda: 1)
    assert second.cancel()
    go.set()

    def fails() -> None:
        raise SystemExit(3)

    third = threads.submit(fails)
    wait([first, third], 5)
    assert isinstance(third.exception(0), SystemExit)
    assert threads.submit(lambda: 7).result(5) == 7
    threads.close()


@pytest.mark.slow
def test_a_call_that_never_ends_keeps_no_interpreter_from_ending() -> None:
    program = (
        "import threading\n"
        "from perdure.engine.handlers.threads import Threads\n"
        "threads = Threads(1)\n"
        "threads.submit(threading.Event().wait)\n"
        "threads.close()\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=30, check=True)
