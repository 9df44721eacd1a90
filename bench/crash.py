"""W5: kill -9 a worker among 200 runs of ten 20 ms steps, start another, wait for all runs.

Counts the steps that began twice, and how long the second process took over what was left.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from bench.figures import Figure
from bench.places import Place
from bench.scale import Scale

RUNS, NODES, STEP = 200, 10, 0.02
#: What a restart may take over the work that was left.
GRACE = 2.0
_PATIENCE = 60.0


class Crash(msgspec.Struct, frozen=True):
    """One kill: `repeated` steps began twice; `in_flight` runs had begun and had not ended;
    `left` is the least the remaining work can take, `restart` what it took, in seconds."""

    repeated: int
    in_flight: int
    left: float
    restart: float
    lost: int


def measure(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """W5 on the places that outlive a process."""
    figures = []
    runs = max(4, int(RUNS * scale.whole))
    for place in places:
        if place.sync is not None:
            crashes = [crash(place, runs) for _ in range(max(1, scale.repeats // 2))]
            figures += _figures(place, runs, crashes)
    return figures


def _figures(place: Place, runs: int, crashes: list[Crash]) -> list[Figure]:
    case = f"{place.name}, {runs} runs"
    worst = max(crashes, key=lambda crash: crash.repeated / max(crash.in_flight, 1))
    lost = sum(crash.lost for crash in crashes)
    over = median(crash.restart - crash.left for crash in crashes)
    return [
        Figure(
            "W5", f"{case}: repeated", worst.repeated, "steps", worst.in_flight,
            "W5: the runs that were in flight when the process was killed",
            worst.repeated / max(worst.in_flight, 1), "<= runs in flight",
            worst.repeated <= worst.in_flight and not lost,
            note=f"{lost} run(s) did not finish as they should" if lost else "",
        ),
        Figure(
            "W5", f"{case}: restart", over * 1e3, "ms over the work left",
            budget=f"<= {GRACE:g} s", met=over <= GRACE,
        ),
    ]  # fmt: skip


def crash(place: Place, runs: int, step: float = STEP) -> Crash:
    """Start, kill at a random moment, start again, count."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "steps.log"
        args = [place.url(folder), str(log)]
        rest = [str(runs), str(NODES), str(step)]
        worker = _worker([*args, "start", *rest])
        try:
            _wait_until(log, worker, int(runs * NODES * random.uniform(0.2, 0.8)))
        finally:
            os.kill(worker.pid, signal.SIGKILL)
            worker.communicate()
        before = steps_begun(log)
        begin = time.perf_counter()
        out, _ = _worker([*args, "finish", *rest]).communicate(timeout=_PATIENCE)
        restart = time.perf_counter() - begin
        after = steps_begun(log)
    if b"finished" not in out:
        raise RuntimeError("the second worker did not finish the runs")
    seen = Counter(run for run, _ in before)
    # A run whose last step began may have ended: it counts as in flight only if it ran again.
    ended = sum(1 for run, steps in seen.items() if steps == NODES and after[run, "n9"] == 1)
    started = len({run for run, _ in after})
    return Crash(
        repeated=sum(count - 1 for count in after.values()),
        in_flight=len(seen) - ended,
        left=max(NODES - seen.get(f"r{at}", 0) for at in range(runs)) * step,
        restart=restart,
        lost=runs * NODES - len(after) + (runs - started),
    )


def _worker(args: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.crash_worker", *args]
    root = Path(__file__).resolve().parent.parent
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root)


def _wait_until(log: Path, worker: subprocess.Popen[bytes], steps: int) -> None:
    """Until so many steps began and every run was started."""
    assert worker.stdout is not None
    if worker.stdout.readline().strip() != b"started":
        raise RuntimeError("the first worker did not start the runs")
    deadline = time.monotonic() + _PATIENCE
    while sum(steps_begun(log).values()) < steps:
        if worker.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the first worker did not get far enough to be killed")
        time.sleep(0.002)


def steps_begun(log: Path) -> Counter[tuple[str, str]]:
    """How often each step began."""
    if not log.exists():
        return Counter()
    lines = log.read_text().splitlines()
    return Counter((run, node) for run, node in (text.split() for text in lines))
