"""Keyset paging over runs: what a page begins after when its last run is gone."""

from __future__ import annotations


def born(key: bytes) -> int:
    """When a run with this key was created, in µs, to the millisecond: a UUIDv7 begins with it."""
    return int.from_bytes(key[:6], "big") * 1000
