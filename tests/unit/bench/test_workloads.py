"""Every workload of the measurements runs, at its smallest, and says what it should.

No figure is judged here: how fast a machine is proves nothing about the code. W5 kills processes
and W6 starts many; what is tested of them is what they count, not that they run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from bench import __main__ as bench
from bench import (
    bytecodes,
    crash,
    flows,
    idle,
    imports,
    lengths,
    long_flows,
    long_runs,
    naps,
    sagas,
    signals,
    starts,
    throughput,
)
from bench.figures import Budget, Figure, rated
from bench.places import MEMORY, SQLITE, places, row_size
from bench.report import as_json, table
from bench.scale import TINY
from bench.statements import kind
from bench.waiting import waiting
from perdure import RunFailed


@pytest.mark.parametrize(
    "chain",
    [throughput.w1(), throughput.w8(), flows.w1f(), sagas.saga(5), sagas.w9()],
    ids=["W1", "W8", "W1f", "saga", "W9"],
)
def test_a_chain_is_measured_in_memory_beside_its_ceiling(chain: throughput.Chain) -> None:
    [figure] = asyncio.run(throughput.measure(chain, [MEMORY], [2], TINY))
    assert (figure.workload, figure.case) == (chain.name, "memory, 2 runs")
    assert figure.value > 0
    assert figure.ceiling is not None
    assert figure.ceiling > 0


def test_a_chain_of_reading_nodes_counts_up_from_the_input_of_the_run() -> None:
    async def last_output() -> object:
        chain = throughput.w8()
        async with throughput.Engine("memory:", [chain.graph, chain.step]) as engine:
            return await engine.run(chain.graph, {"n": 5})

    assert asyncio.run(last_output()) == {"n9": {"n": 15}}


def test_the_saga_of_w9_undoes_what_it_did_and_its_attempts_are_what_is_counted() -> None:
    async def done() -> tuple[list[str], int]:
        chain = sagas.w9()
        async with throughput.Engine("memory:", [chain.graph]) as engine:
            run = await engine.start(chain.graph, None)
            with pytest.raises(RunFailed) as failed:
                await run.result()
            begun = [r async for r in run.history() if r["do"] == "DispatchTask"]
        return failed.value.details["undone"], len(begun)

    undone, begun = asyncio.run(done())
    assert undone == ["s3", "s2", "s1", "s0"]
    assert begun == sagas.w9().nodes


def test_a_run_that_was_to_fail_and_does_not_is_no_figure() -> None:
    chain = msgspec.structs.replace(sagas.saga(1), fails=True)
    with pytest.raises(RuntimeError, match="was to fail, and did not"):
        asyncio.run(throughput.measure(chain, [MEMORY], [1], TINY))


@pytest.mark.parametrize("workload", bytecodes.WORKLOADS)
def test_bytecodes_of_a_step_are_told_apart_from_those_of_a_run_beside_its_steps(
    workload: str,
) -> None:
    counted = asyncio.run(bytecodes.count(bytecodes.WORKLOADS[workload], "memory:"))
    step = "sagas.py:bare" if workload == "saga" else "chains.py:nothing"
    assert counted.step[step] > 0
    assert counted.run[step] == 0
    assert counted.run["starting.py:begin"] > 0
    assert counted.step["starting.py:begin"] == 0


def test_sagas_of_every_length_are_measured() -> None:
    figures = asyncio.run(sagas.measure_sagas([MEMORY], TINY))
    assert [(figure.workload, figure.case) for figure in figures] == [
        ("saga of 5", "memory, 1 run"),
        ("saga of 5", "memory, 64 runs"),
        ("saga of 50", "memory, 1 run"),
        ("saga of 50", "memory, 64 runs"),
        ("saga", "memory, 1 run: a step alone"),
        ("saga", "memory, 1 run: start and end"),
        ("saga", "memory, 64 runs: a step alone"),
        ("saga", "memory, 64 runs: start and end"),
    ]
    assert [figure.met is not None for figure in figures] == [True] * 4 + [False] * 4


def test_what_a_step_costs_is_told_apart_from_what_its_run_does() -> None:
    # 10 µs a step, 100 µs a run
    short = Figure("saga of 5", "memory, 1 run", 5e6 / 150, "nodes/s")
    long = Figure("saga of 50", "memory, 1 run", 50e6 / 600, "nodes/s")
    step, run = lengths.apart("saga", (5, short), (50, long))
    assert (round(step.value, 6), round(run.value, 6)) == (10.0, 100.0)


def test_naps_are_measured_in_memory_beside_bare_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naps, "LOADS", (2,))
    monkeypatch.setattr(naps, "BUDGETS", {2: None})
    monkeypatch.setattr(naps, "LONGEST", 0.0)
    [figure] = asyncio.run(naps.measure([MEMORY, SQLITE[1]], TINY))
    assert (figure.workload, figure.case) == ("W1r", "memory, 2 runs")
    assert figure.value > 0
    assert figure.ceiling is not None
    assert figure.ceiling > 0


def test_starts_are_measured_in_memory_beside_their_ceiling() -> None:
    [figure] = asyncio.run(starts.measure([MEMORY], TINY))
    assert figure.workload == "W3"
    assert figure.value > 0


def test_signals_are_measured_in_one_process_in_memory() -> None:
    figures = signals.measure([MEMORY], TINY)
    assert [figure.case for figure in figures] == ["memory, in memory", "memory, parked"]
    assert all(figure.value > 0 for figure in figures)


def test_bytes_of_waiting_runs_are_those_of_an_engine_that_keeps_them() -> None:
    [figure] = asyncio.run(idle.measure([MEMORY], TINY))
    assert figure.unit == "bytes a run"
    assert 1_000 < figure.value < 100_000


def test_a_long_run_is_measured_beside_short_ones_and_replayed() -> None:
    figures = asyncio.run(long_runs.measure([MEMORY], TINY))
    assert [figure.workload for figure in figures] == ["W10"] * 3
    assert all(figure.ratio is not None for figure in figures[:2])


def test_parallel_steps_are_measured_and_what_waits_in_memory() -> None:
    figures = asyncio.run(flows.measure_wide([MEMORY], TINY))
    assert [figure.unit for figure in figures] == ["steps/s", "bytes each", "bytes each"]
    assert all(figure.value > 0 for figure in figures)


def test_a_long_workflow_is_measured_beside_short_ones_and_replayed() -> None:
    figures = asyncio.run(long_flows.measure([MEMORY], TINY))
    assert [figure.workload for figure in figures] == ["W10f"] * 2


def test_a_graph_that_waits_has_its_steps_first_and_then_its_waits() -> None:
    types = [node.type for node in waiting(2, 3).plan.nodes.values()]
    assert types == ["TASK"] * 2 + ["WAIT_FOR_SIGNAL"] * 3


@pytest.mark.parametrize(
    ("statement", "counts_as"),
    [
        ("BEGIN IMMEDIATE", "frame"),
        ("COMMIT", "frame"),
        ("PRAGMA data_version", "look"),
        ("\nSELECT 1 FROM run", "query"),
        ("UPDATE worker SET lease_until = 1", "query"),
    ],
)
def test_statements_are_counted_by_what_they_ask_of_the_file(
    statement: str, counts_as: str
) -> None:
    assert kind(statement) == counts_as


def test_the_size_of_rows_is_that_of_the_rows_a_run_writes() -> None:
    chain = throughput.w8()
    size = asyncio.run(row_size(chain.graph, [chain.step], chain.given))
    assert 100 < size < 1000


def test_dependencies_are_those_without_extras() -> None:
    assert [name.split(">")[0] for name in sorted(imports.dependencies())] == [
        "click",
        "cronsim",
        "msgspec",
    ]


def test_a_log_of_steps_counts_each_time_one_began(tmp_path: Path) -> None:
    log = tmp_path / "steps.log"
    assert crash.steps_begun(log) == Counter()
    log.write_text("r0 n0\nr0 n1\nr0 n1\n")
    assert crash.steps_begun(log) == {("r0", "n0"): 1, ("r0", "n1"): 2}


@pytest.mark.parametrize(
    ("budget", "rate", "ratio", "met"),
    [
        (Budget(micros=16), 62_500, 0.0, True),
        (Budget(micros=16), 62_000, 0.0, False),
        (Budget(share=0.35, rate=15_000), 15_000, 0.1, True),
        (Budget(share=0.35, rate=15_000), 9_000, 0.35, True),
        (Budget(share=0.35, rate=15_000), 14_999, 0.34, False),
    ],
)
def test_a_budget_is_met_by_any_of_its_limits(
    budget: Budget, rate: float, ratio: float, met: bool
) -> None:
    assert budget.met(rate, ratio) is met


def test_a_ratio_is_the_median_of_the_repeats_own_ratios() -> None:
    figure = rated("W0", "x", "node", [10, 20, 90], [100, 100, 100], "a wall", Budget(share=0.5))
    assert (figure.value, figure.ratio, figure.met) == (20, 0.2, False)


def test_the_table_says_which_budgets_were_missed_and_json_keeps_everything() -> None:
    figures = [
        Figure("W1", "memory", 50_000, "nodes/s", 1e6, "a dict", 0.05, "<= 16 µs a node", False),
        Figure("W6", "import perdure", 40, "ms", budget="<= 60 ms", met=True, note="a note"),
    ]
    first, _, w1, w6, *rest = table(figures).splitlines()
    assert first.split() == ["case", "figure", "µs", "each", "ceiling", "ratio", "budget"]
    assert "50,000 nodes/s" in w1
    assert w1.split()[-9:-6] == ["20", "1,000,000", "5%"]
    assert w1.endswith("MISSED")
    assert w6.endswith("met")
    assert rest == ["", "ceiling: a dict", "W6 import perdure: a note"]
    kept = msgspec.json.decode(as_json(figures))
    assert msgspec.convert(kept["figures"], list[Figure]) == figures


def test_stores_are_chosen_by_name() -> None:
    assert places("all") == (MEMORY, *SQLITE)
    assert places("memory") == (MEMORY,)
    assert [place.sync for place in places("sqlite")] == ["full", "normal"]


def test_an_unknown_workload_is_named_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert bench.main(["w99"]) == 2
    assert f"no workload w99; there are {', '.join(bench.WORKLOADS)}" in capsys.readouterr().out
