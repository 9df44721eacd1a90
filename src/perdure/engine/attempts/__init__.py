"""Attempts: one step made once, in a task that is there, and how it ended. Knows no run."""
