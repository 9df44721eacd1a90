"""W6: what it costs to import perdure, what that brings along, and a hello world."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.scale import Scale

ALLOWED = {"msgspec"}
MOST_MS, MOST_DEPENDENCIES = 60.0, 3

_THIRD_PARTY = """
import sys, sysconfig
before = set(sys.modules)
import perdure
installed = tuple(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
new = [module for name, module in sys.modules.items() if name not in before]
new = [module for module in new if (getattr(module, "__file__", "") or "").startswith(installed)]
print(*sorted({module.__name__.partition(".")[0] for module in new} - {"perdure"}))
"""
_HELLO = """
import asyncio
from perdure import Engine, Graph, step

@step
async def hello(name: str) -> str:
    return f"Hello, {name}!"

graph = Graph.load({"name": "greeting", "nodes": [
    {"id": "say", "type": "TASK", "spec": {"step": "hello", "input": {"name": "{{input.name}}"}}},
]})

async def main() -> None:
    async with Engine("memory:", [graph, hello]) as engine:
        assert await engine.run(graph, {"name": "world"}) == {"say": "Hello, world!"}

asyncio.run(main())
"""
#: What perdure cannot do without: an event loop, and its records.
_LEAST = "import asyncio, msgspec"
_EVERY = "import perdure\nfor name in perdure.__all__: getattr(perdure, name)"


def measure(scale: Scale) -> list[Figure]:
    """Times over a bare interpreter's, medians; and two counts."""
    bare, least, imported, every, hello = _medians(
        ["pass", _LEAST, "import perdure", _EVERY, _HELLO], scale.repeats * 3
    )
    brought = third_party()
    extra, wanted = sorted(set(brought) - ALLOWED), dependencies()
    return [
        Figure(
            "W6", "import perdure", imported - bare, "ms", least - bare,
            _ASYNCIO,
            (imported - bare) / max(least - bare, 0.1), f"<= {MOST_MS:g} ms",
            imported - bare <= MOST_MS,
        ),
        Figure(
            "W6", "import every public name", every - bare, "ms", least - bare, _ASYNCIO,
            (every - bare) / max(least - bare, 0.1),
        ),
        Figure(
            "W6", "third-party modules imported", len(brought), "modules",
            budget="msgspec only", met=not extra, note=", ".join(extra),
        ),
        Figure(
            "W6", "direct dependencies", len(wanted), "packages",
            budget=f"<= {MOST_DEPENDENCIES}", met=len(wanted) <= MOST_DEPENDENCIES,
            note=", ".join(wanted),
        ),
        Figure("W6", "hello world, whole process", hello, "ms", bare, _BARE, hello / bare),
    ]  # fmt: skip


_ASYNCIO = "W6 imports: asyncio and msgspec alone; the ratio says how many times as long it takes"
_BARE = "W6 hello world: an interpreter that does nothing"


def third_party() -> list[str]:
    """The packages from outside the standard library that `import perdure` loads."""
    return _run(_THIRD_PARTY).stdout.decode().split()


def dependencies() -> list[str]:
    """What installing perdure without extras asks for."""
    wanted = importlib.metadata.requires("perdure") or []
    return [requirement for requirement in wanted if "extra ==" not in requirement]


def _medians(programs: list[str], repeats: int) -> list[float]:
    """ms of each program's whole process, the programs taking turns.

    With compiled modules kept, as an installation has them; the first round compiles.
    """
    taken: list[list[float]] = [[] for _ in programs]
    with tempfile.TemporaryDirectory() as compiled:
        for turn in range(max(1, repeats) + 1):
            for program, times in zip(programs, taken, strict=True):
                begin = time.perf_counter()
                _run(program, compiled)
                if turn:
                    times.append((time.perf_counter() - begin) * 1e3)
    return [median(times) for times in taken]


def _run(program: str, compiled: str | None = None) -> subprocess.CompletedProcess[bytes]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    if compiled is not None:
        environment["PYTHONPYCACHEPREFIX"] = compiled
    # From a folder without a perdure of its own: what is measured is what is installed.
    return subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE,
        cwd=Path(sys.prefix), env=environment,
    )  # fmt: skip
