"""The Python steps of approval.yaml: ordinary functions that keep a list of what they did."""

from __future__ import annotations

import json

from perdure import current_step, step


@step
def reserve(order: str, items: list[str]) -> dict[str, list[str]]:
    note("reserve", order)
    return {"reserved": items}


@step
def ship(order: str, items: list[str]) -> dict[str, str]:
    note("ship", order)
    return {"tracking": f"TRACK-{order}-{len(items)}"}


@step
def release(order: str, reason: str) -> None:
    note("release", order, reason=reason)


def note(what: str, order: str, **more: str) -> None:
    """One JSON object a line; `key` is the same if the step has to be run a second time."""
    line = {"step": what, "order": order, "key": current_step().idempotency_key, **more}
    with open("warehouse.log", "a", encoding="utf-8") as log:  # noqa: PTH123  plain is clearer
        log.write(json.dumps(line) + "\n")
