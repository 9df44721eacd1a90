"""perdure for synchronous programs: the same Client, Engine and Run, without `await`.

Their event loop runs in a thread of its own, started at the first call. Safe to use from many
threads, and in processes that a server forked: each has its own loop and its own connections.
"""

from __future__ import annotations

from perdure.blocking.client import Client
from perdure.blocking.engine import Engine
from perdure.blocking.run import Run

__all__ = ["Client", "Engine", "Run"]
