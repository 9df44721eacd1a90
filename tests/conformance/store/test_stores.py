"""Our stores keep what the conformance suite asks of every store."""

from __future__ import annotations

from tests.conformance.store.places import MemorySuite, SqliteSuite


class TestMemory(MemorySuite):
    """Runs in memory."""


class TestSqlite(SqliteSuite):
    """Runs in a file."""
