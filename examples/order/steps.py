"""The Python steps of order.json: ordinary functions.

What a step returns is recorded when it has ended, and then it is never run again. A step that was
under way when its process died is run again; `idempotency_key` is the same then, so that whoever
does the real work can tell a repeat from a new request. Here that is a warehouse: it writes down
everything it is asked for, and does each thing once.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from perdure import current_step, step


@step
def reserve(order: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    asked("reserve", order)
    time.sleep(0.5)
    once("reserve")
    return {"reserved": [item["name"] for item in items]}


@step
def ship(order: str, items: list[str]) -> dict[str, str]:
    asked("ship", order)
    time.sleep(0.5)
    once("ship")
    return {"tracking": f"TRACK-{order}-{len(items)}"}


def once(what: str) -> None:
    """Do it, unless it was done for this key before: a file can be made only once."""
    key = current_step().idempotency_key
    done = Path("warehouse", key)
    done.parent.mkdir(exist_ok=True)
    try:
        done.touch(exist_ok=False)
    except FileExistsError:
        return
    note(did=what, key=key)


def asked(what: str, order: str) -> None:
    context = current_step()
    note(asked=what, order=order, attempt=context.attempt, key=context.idempotency_key)


def note(**line: Any) -> None:
    """The warehouse's log, one JSON object a line."""
    with open("warehouse.log", "a", encoding="utf-8") as log:  # noqa: PTH123  plain is clearer
        log.write(json.dumps({**line, "process": os.getpid()}) + "\n")
