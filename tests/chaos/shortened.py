"""Runs a module as a program whose leases are short: `python -m tests.chaos.shortened SECONDS
MODULE ARGUMENT…`. The length is set before anything that reads it is imported."""

from __future__ import annotations

import runpy
import sys

from perdure.stores import port

if __name__ == "__main__":
    port.LEASE = int(float(sys.argv[1]) * 1_000_000)
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
