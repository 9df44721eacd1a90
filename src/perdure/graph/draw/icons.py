"""Icons: what each type of node and each state looks like, as paths in a square of 16 pixels.

Drawn and not written: no font has to have a sign for them, and colour is never the only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from perdure.graph.draw.course import State

TYPES: Final[Mapping[str, str]] = {
    # a gear
    "TASK": "M8 5.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 1 0 0-5.6M8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2"
    "M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4",
    # a globe
    "HTTP": "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12M2 8h12M8 2c-4.5 4-4.5 8 0 12c4.5-4 4.5-8 0-12",
    # a run within a run
    "CHILD": "M2 2h8.5v8.5H2zM6 13.9h7.9V6",
    # a question
    "SWITCH": "M8 1.8L14.2 8L8 14.2L1.8 8zM6.4 6.6q0-1.6 1.6-1.6t1.6 1.5q0 1-1.6 1.9M8 10.8v.1",
    # one becomes several
    "FORK": "M8 2v4M3 13.5V9q0-3 5-3q5 0 5 3v4.5M8 6v7.5",
    # several become one
    "JOIN": "M8 14v-4M3 2.5V7q0 3 5 3q5 0 5-3V2.5M8 10V2.5",
    # a clock
    "WAIT": "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12M8 4.8V8l2.3 1.8",
    # a bell
    "WAIT_FOR_SIGNAL": "M3 11.5h10l-1.3-1.7V7a3.7 3.7 0 0 0-7.4 0v2.8zM6.8 14h2.4M8 3.2V2",
}

#: Within a filled circle of the same square.
STATES: Final[Mapping[State, str]] = {
    "completed": "M4.8 8.3l2.2 2.3l4.2-4.9",
    "running": "M6.4 5l4.6 3l-4.6 3z",
    "retrying": "M11.2 7.9a3.3 3.3 0 1 1-1.2-2.6M10.3 3.4v2.2h-2.2",
    "waiting": "M8 4.4V8l2.4 1.6",
    "failed": "M5.5 5.5l5 5M10.5 5.5l-5 5",
    "canceled": "M5.8 5.8h4.4v4.4H5.8z",
    "skipped": "M5 8h6",
    "compensated": "M4.8 7.9a3.3 3.3 0 1 0 1.2-2.6M5.7 3.4v2.2h2.2",
    "pending": "",
}
