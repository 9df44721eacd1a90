"""The Python steps of order.json: ordinary functions.

What a step returns is recorded when it has ended, and then it is never run again. A step that was
under way when its process died is run again; `idempotency_key` is the same then, so that whoever
does the real work can tell a repeat from a new request.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from perdure import current_step, step


@step
def reserve(order: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    note("reserve", order)
    time.sleep(0.5)
    return {"reserved": [item["name"] for item in items]}


@step
def ship(order: str, items: list[str]) -> dict[str, str]:
    note("ship", order)
    time.sleep(0.5)
    return {"tracking": f"TRACK-{order}-{len(items)}"}


@step
def review(order: dict[str, Any]) -> dict[str, Any]:
    note("review", order["id"])
    time.sleep(0.4)
    return {"approved": True}


def note(what: str, order: str) -> None:
    """The warehouse keeps a list of what it was asked to do, one JSON object a line."""
    context = current_step()
    line = {
        "node": what,
        "order": order,
        "attempt": context.attempt,
        "key": context.idempotency_key,
        "process": os.getpid(),
    }
    with open("warehouse.log", "a", encoding="utf-8") as log:  # noqa: PTH123  plain is clearer
        log.write(json.dumps(line) + "\n")
