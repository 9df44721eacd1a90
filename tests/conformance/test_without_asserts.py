"""What checks for users checks where python leaves `assert` out (`-O`), or says it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CRASHES = """
import asyncio
from perdure import Context, step, workflow
from perdure.testing import crash_everywhere

@step
def charge(cents: int) -> int:
    return cents

@workflow(max_duration="1h")
async def pays(ctx: Context, cents: int) -> int:
    return await charge(cents)

asyncio.run(crash_everywhere(pays, 3))
"""


def optimized(*words: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-O", *words], capture_output=True, text=True, cwd=root, check=False
    )


@pytest.mark.slow
def test_a_step_that_is_repeated_is_found_without_asserts() -> None:
    done = optimized("-c", CRASHES)
    assert done.returncode == 1
    assert "AssertionError: killed before write" in done.stderr
    assert "step charge is done twice" in done.stderr


@pytest.mark.slow
def test_the_kit_refuses_to_pass_what_it_cannot_check() -> None:
    done = optimized("-m", "perdure.conformance", "tests.conformance.store.places:MemorySuite")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "python -O leaves out what the cases check: examine without -O\n"
