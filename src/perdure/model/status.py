"""The statuses of runs and tasks, as plain strings.

Plain strings, not enums: they are compared and hashed for every node of every run, and an
enum's hash costs ten times a string's.
"""

from __future__ import annotations

from typing import Final, Literal

TaskStatus = Literal[
    "pending", "waiting", "completed", "skipped", "failed", "canceled", "compensated"
]
RunStatus = Literal["running", "completed", "failed", "canceled"]

#: A task that still has to end before its run can. `queued` and `running` are where an attempt
#: is, for display; the kernel records only `pending`.
ACTIVE: Final[frozenset[str]] = frozenset({"pending", "waiting"})
RESOLVED: Final[frozenset[str]] = frozenset(
    {"completed", "skipped", "failed", "canceled", "compensated"}
)
TERMINAL: Final[frozenset[str]] = frozenset({"completed", "failed", "canceled"})
