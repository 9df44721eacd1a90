"""Ending the process with an exit code, also when the thread of a step does not end."""

from __future__ import annotations

import os
import sys
import threading

import click


def step_threads() -> frozenset[threading.Thread]:
    """The threads of steps there are: before a command begins, none of them is its own."""
    return frozenset(t for t in threading.enumerate() if t.name.startswith("perdure-step"))


def leave(code: int, others: frozenset[threading.Thread]) -> None:
    """End with this code. An attempt whose thread goes on is not recorded: whoever goes on with
    its run makes it again. `others`: threads of steps that are not this command's."""
    for thread in step_threads() - others:
        thread.join(0.2)
        if thread.is_alive():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    click.get_current_context().exit(code)
