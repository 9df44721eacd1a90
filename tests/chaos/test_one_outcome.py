"""Several processes ask for the same things at once: one run for each key, one outcome for all."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from tests.chaos.buyer import KEYS
from tests.tidy.tree import ROOT

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


def launched(tmp_path: Path) -> subprocess.Popen[bytes]:
    told = [sys.executable, "-m", "tests.chaos.buyer", str(tmp_path / "db"), str(tmp_path / "log")]
    return subprocess.Popen(told, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def say(pipe: IO[bytes] | None) -> None:
    assert pipe is not None
    pipe.write(b"go\n")
    pipe.flush()


def line(pipe: IO[bytes] | None) -> bytes:
    assert pipe is not None
    return pipe.readline()


@pytest.mark.rule("S-23", "D-19")
def test_processes_that_share_a_key_share_one_run_and_one_outcome(tmp_path: Path) -> None:
    processes = [launched(tmp_path) for _ in range(3)]
    try:
        for one in processes:
            assert line(one.stdout) == b"up\n"
        for one in processes:
            say(one.stdin)
        outcomes: list[Any] = [msgspec.json.decode(line(one.stdout)) for one in processes]
        for one in processes:
            say(one.stdin)
        assert [one.wait(30) for one in processes] == [0, 0, 0]
    finally:
        for one in processes:
            one.kill()
            one.communicate()
    assert outcomes[0] == outcomes[1] == outcomes[2]
    for n, outcome in enumerate(outcomes[0]):
        if n % 2:
            assert outcome[0].endswith(f"declined {n}")
            assert outcome[1] is True
        else:
            assert outcome["charge"].endswith(f"charged {n}")
    wanted = [f"k{n} {node}" for n in range(KEYS) for node in ("charge", "ship")]
    wanted += [f"k{n} charge~undo" for n in range(1, KEYS, 2)]
    assert Counter((tmp_path / "log").read_text().splitlines()) == Counter(wanted)
