"""Shielded: whoever looks on is called so that nothing he raises changes what he looks at."""

from __future__ import annotations

import logging
from collections.abc import Callable

_log = logging.getLogger("perdure.engine")


def shielded(call: Callable[..., None], *args: object) -> None:
    """Call an observer."""
    try:
        call(*args)
    except Exception:
        _log.exception("an observer failed")
