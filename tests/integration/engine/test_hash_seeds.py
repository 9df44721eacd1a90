"""The same run in processes that hash differently: the same journal, byte for byte."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.tidy.tree import ROOT

#: Prints the rows of a run with branches, choices, waits and failures, in virtual time.
PROGRAM = """
import asyncio
from perdure import Failure, step
from tests.virtual.engines import engine_on, graph, node, task, wait, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

@step
async def take(n):
    if n == 5:
        raise Failure("five")
    return {"n": n, "names": sorted({"x", "y", "z"})}

ids = [f"{word}{i}" for i, word in enumerate(["tau", "ceti", "alpha", "mu", "zeta", "nu"])]
g = graph(
    "g",
    [node("f", "FORK"), *(task(id, "take", {"n": i}) for i, id in enumerate(ids)),
     wait("nap", "1s"), wait_for("one", "go"), node("j", "JOIN"), node("s", "SWITCH"),
     task("left", "take", {"n": 7}), task("right", "take", {"n": "{{tasks.mu3.output.n}}"})],
    [*(f"f {id}" for id in [*ids, "nap", "one"]), *(f"{id} j" for id in [*ids[:5], "nap", "one"]),
     "j s", {"from": "s", "to": "left", "condition": "{{tasks.tau0.output.n == 0}}"},
     {"from": "s", "to": "right", "condition": "{{tasks.mu3.output.n == 3}}"}],
)

async def main():
    store = VirtualStore()
    async with engine_on(store, g, take) as engine:
        started = await engine.start(g, id="1")
        await started.signal("go", {"b": 1, "a": 2}, dedupe_key="k")
        await asyncio.sleep(10)
        loaded = await store.load((await store.describe("g", "1")).key)
        for row in loaded.journal:
            print(row.seq, row.body.decode())

run(main())
"""


#: They hold chance: only where they stand is compared.
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def journal(seed: str) -> str:
    """What a process with this hash seed records."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True, cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    known: dict[str, str] = {}
    return _ID.sub(lambda found: known.setdefault(found[0], f"id-{len(known)}"), ran.stdout)


@pytest.mark.slow
@pytest.mark.rule("G-1", "G-57")
def test_the_order_of_sets_and_dictionaries_of_a_process_changes_no_journal() -> None:
    # scenarios 1, 20
    first = journal("0")
    assert len(first.splitlines()) > 5
    assert '"FinishRun"' in first
    assert [seed for seed in ("1", "2", "31337") if journal(seed) != first] == []
