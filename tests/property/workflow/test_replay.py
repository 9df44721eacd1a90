"""Whatever a workflow does, and whenever its process dies: the same journal and the same result.

The seeds are fixed: a failing one is named, and fails again.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from random import Random

import pytest

from tests.property.workflow.plays import Reload, always, never, play, sometimes
from tests.property.workflow.programs import program, workflow_of

PARTS = 20
PROGRAMS = 500


def check(seed: int, *disturbed: Reload, lives: int = 1, retries: int = 0) -> int:
    random = Random(seed)
    made = workflow_of(program(random), lives)
    schedule = random.randint(0, 10**9)
    expected, _ = play(made, schedule, never, retries=retries)
    reloads = 0
    for reload in disturbed:
        journal, times = play(made, schedule, reload, retries=retries)
        assert journal == expected, f"program of seed {seed}, reloaded {reload.__name__}"
        reloads += times
    return reloads


@pytest.mark.rule("W-28")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_workflow_reloaded_at_any_moment_decides_the_same(part: int) -> None:
    # scenarios 1, 2, 6, 9, 15
    reloads = 0
    for number in range(PROGRAMS):
        every = (always,) if number % 5 == 0 else (sometimes,)
        reloads += check(PROGRAMS * part + number, *every)
    assert reloads > PROGRAMS


@pytest.mark.parametrize("part", range(4))
def test_a_run_retried_from_anywhere_decides_the_same_however_often_it_is_reloaded(
    part: int,
) -> None:
    for number in range(250):
        check(1_000_000 + 250 * part + number, sometimes, always, retries=1 + number % 3)


@pytest.mark.parametrize("part", range(2))
def test_a_run_that_goes_on_as_new_decides_the_same_however_often_it_is_reloaded(
    part: int,
) -> None:
    for number in range(250):
        check(2_000_000 + 250 * part + number, sometimes, always, lives=3, retries=number % 2)


def journals_digest() -> str:
    digest = hashlib.sha256()
    for seed in range(3_000_000, 3_000_150):
        random = Random(seed)
        made = workflow_of(program(random))
        for line in play(made, random.randint(0, 10**9), sometimes)[0]:
            digest.update(line)
    return digest.hexdigest()


def test_the_order_of_hashes_changes_nothing() -> None:
    # scenario 20: two processes whose strings hash otherwise write the same journals
    ask = f"from {__name__} import journals_digest; print(journals_digest())"
    told = {
        subprocess.run(
            [sys.executable, "-c", ask],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "4711")
    }
    assert told == {journals_digest() + "\n"}
