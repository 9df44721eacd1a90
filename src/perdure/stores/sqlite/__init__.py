"""SqliteStore: runs in one SQLite file, safe against power cuts, for one or several processes."""

from __future__ import annotations

from perdure.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
