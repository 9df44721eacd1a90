"""The end of whoever began this process is its end: a kill of the demo leaves nothing running.

Whoever begins one gives it a pipe as standard input and never writes to it: the pipe is closed
when its other end dies.
"""

from __future__ import annotations

import os
import sys
import threading


def tie() -> None:
    """From here on the end of standard input is the end of this process."""
    threading.Thread(target=_end_with_parent, name="perdure-tie", daemon=True).start()


def _end_with_parent() -> None:
    try:
        while os.read(sys.stdin.fileno(), 4096):
            pass
    finally:
        os._exit(0)
