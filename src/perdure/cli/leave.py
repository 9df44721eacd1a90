"""Ending the process with an exit code, also when the thread of a step does not end."""

from __future__ import annotations

import os
import sys
import threading

import click


def leave(code: int) -> None:
    """End with this code. An attempt whose thread goes on is not recorded: whoever goes on with
    its run makes it again."""
    for thread in threading.enumerate():
        if thread.name.startswith("perdure-step"):
            thread.join(0.2)
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
    click.get_current_context().exit(code)
