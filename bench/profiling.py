"""One workload under the profiler: where the time goes, without start-up and shutdown."""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import tempfile
from pathlib import Path

from bench.chains import nothing, plain
from bench.places import Place
from bench.scale import Scale
from bench.starts import start_all
from bench.throughput import Chain, Load, drive, w1, w8
from perdure import Engine

LINES = 45


def profile(workload: str, place: Place, scale: Scale) -> None:
    """Print the functions that took the most time themselves. W1, W3 and W8 have a loop."""
    if workload not in ("w1", "w3", "w8"):
        raise SystemExit(f"--profile: {workload} runs in other processes; use w1, w3 or w8")
    print(f"{workload.upper()} on {place.name}, in µs of the profiler's inflated time")
    chain = Chain("W3", plain(1), nothing) if workload == "w3" else {"w1": w1, "w8": w8}[workload]()
    asyncio.run(_profile(chain, place, max(64, int(1000 * scale.whole))))


async def _profile(chain: Chain, place: Place, runs: int) -> None:
    profiler = cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder:
        async with Engine(place.url(Path(folder)), [chain.graph, chain.step]) as engine:
            await drive(engine, chain, Load(64, 64))
            profiler.enable()
            if chain.name == "W3":
                await start_all(engine, chain.graph, runs)
            else:
                await drive(engine, chain, Load(runs, 64))
            profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(LINES)
