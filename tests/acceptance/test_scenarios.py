"""Faults seen in other systems, as documents: each lints as its head says, and runs so.

The lines at the top of a document say what is right: `lint: clean`, or `error:`/`warning:` with
the place and the reason; `run: INPUT => node=status …: status of the run`, and `output:`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from perdure.cli.nodes import NodeBook
from perdure.flow.step import step
from perdure.graph import Graph, lint
from perdure.model.errors import Failure
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

FOLDER = Path(__file__).with_name("scenarios")
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
RUN = re.compile(r"run: (\{.*\}) => (.*): (\w+)")


@step
async def work(value: Any = None, fail: bool = False, hang: bool = False, path: str = "") -> Any:
    if hang:
        await asyncio.sleep(3600)
    if fail:
        raise Failure("as it was asked to", kind="asked")
    return value


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def said(name: str, *keys: str) -> list[str]:
    """The lines of the head that begin with one of these words."""
    # A line that begins with more spaces belongs to the one before.
    head = text_of(name).replace("\n#   ", " ")
    lines = [line[2:] for line in head.splitlines() if line.startswith("# ")]
    return [line for line in lines if line.split(":")[0] in keys]


def test_there_are_scenarios_and_each_says_what_is_right() -> None:
    assert len(NAMES) > 20
    for name in NAMES:
        assert said(name, "lint", "error", "warning") != [], name
        assert text_of(name).splitlines()[0][2:5] == name[1:4], name


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_lints_as_it_says(name: str) -> None:
    found = lint(text_of(name), format="yaml", steps={"work": work})
    told = [f"{finding.severity}: {finding.pointer}: {finding.message}" for finding in found]
    assert all(finding.line and finding.column for finding in found)
    assert all(finding.hint for finding in found), "each says what to do"
    expected = said(name, "error", "warning")
    assert sorted(told) == sorted(expected)
    assert (told == []) == (said(name, "lint") == ["lint: clean"])


RUNS = [(name, line) for name in NAMES for line in said(name, "run")]


@pytest.mark.parametrize(("name", "line"), RUNS)
def test_a_scenario_runs_as_it_says(name: str, line: str) -> None:
    match = RUN.fullmatch(line)
    assert match is not None, line
    statuses = dict(word.split("=") for word in match[2].split())
    nodes, status, output = run(outcome(name, json.loads(match[1])))
    assert {node: nodes.get(node) for node in statuses} == statuses
    assert status == match[3]
    for expected in said(name, "output"):
        assert output == json.loads(expected.removeprefix("output: "))


async def outcome(name: str, input: Any) -> tuple[dict[str, str], str, Any]:
    """The last status of each node, the run's, and its output."""
    graph = Graph.load(text_of(name), format="yaml")
    async with engine_on(VirtualStore(), graph, work) as engine:
        handle = await engine.start(graph, input, id="1")
        output = None
        with contextlib.suppress(Failure):
            output = await handle.result()
        book = NodeBook()
        async for record in handle.history():
            book.take(record)
        return {n: v.status for n, v in book.nodes.items()}, await handle.status(), output
