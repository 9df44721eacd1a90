"""The Python steps of quotes.yaml. A supplier in the file `closed` does not answer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from perdure import Failure, step

PRICES = {"north": 41.0, "south": 38.5, "east": 44.0}


class Closed(Failure, kind="closed", permanent=True):
    """Asking again would not help."""


class NotAvailable(Failure, kind="not-available", permanent=True):
    """Nobody has it."""


@step
def quote(supplier: str, item: str) -> dict[str, Any]:
    """One supplier's price. A supplier that has no such thing is no failure but an answer."""
    print(f"-> {supplier} is asked")
    closed = Path("closed")
    if closed.exists() and supplier in closed.read_text(encoding="utf-8").split():
        raise Closed(f"{supplier} is closed")
    time.sleep(1)
    return {"supplier": supplier, "price": PRICES[supplier] if item == "teapot" else None}


@step
def choose(quotes: list[dict[str, Any]]) -> dict[str, Any]:
    """The cheapest of those who have it."""
    offers = [quote for quote in quotes if quote["price"] is not None]
    if not offers:
        raise NotAvailable("nobody has it")
    return min(offers, key=lambda quote: quote["price"])
