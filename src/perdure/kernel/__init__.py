"""Decisions: events in, actions out. No clock, no chance, no I/O; only model beneath it."""
