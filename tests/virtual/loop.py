"""Virtual time for tests; it ships with the package, as part of perdure.testing."""

from __future__ import annotations

from perdure.testing.virtual import BEGIN, Deadlock, VirtualClock, VirtualLoop, run, settle

__all__ = ["BEGIN", "Deadlock", "VirtualClock", "VirtualLoop", "run", "settle"]
