"""The pytest plugin: a test that asks for `perdure_engine` has one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # pytest in a process of its own

TESTS = """
import asyncio
from perdure import Context, Signal, TimedOut, step, workflow
from perdure.testing import TestEngine

confirmed = Signal("confirmed", str)

@step
def mail(to: str) -> None: ...

@workflow(max_duration="7d")
async def sign_up(ctx: Context, email: str) -> str:
    await mail(email)
    try:
        return await ctx.wait(confirmed, timeout="72h")
    except TimedOut:
        return "expired"

def test_expires(perdure_engine: TestEngine) -> None:
    async def test() -> None:
        sent = perdure_engine.fake(mail, returns=None)
        run = await perdure_engine.start(sign_up, "ann", id="1")
        await perdure_engine.advance("72h")
        assert await run.result() == "expired" and len(sent.calls) == 1
    asyncio.run(test())

def test_is_another_one(perdure_engine: TestEngine) -> None:
    async def test() -> None:
        assert [one async for one in perdure_engine.runs()] == []
        await perdure_engine.start(sign_up, "ann", id="1")  # and leaves it waiting
        await perdure_engine.settle()
    asyncio.run(test())
"""


def test_the_fixture_is_found_and_each_test_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    options = ["-q", "-p", "perdure.pytest_plugin", "-p", "no:cacheprovider", "-W", "error"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_it.py"],
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # it may be installed by this name, too
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr
    assert ran.stderr == ""
