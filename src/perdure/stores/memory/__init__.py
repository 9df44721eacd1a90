"""MemoryStore: runs in this process's memory; the model of what every store does."""

from __future__ import annotations

from perdure.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
