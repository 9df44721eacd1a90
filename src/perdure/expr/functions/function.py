"""The record of one function: what to call, with how many arguments, and whether it is metered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Function(msgspec.Struct, frozen=True):
    """`run` takes `least` to `most` values (a method's target is the first), after the
    evaluation's state if `metered`; it returns NotImplemented for kinds it has no overload for."""

    run: Callable[..., Any]
    least: int
    most: int
    metered: bool = False


def of(run: Callable[..., Any], least: int, most: int = 0, *, metered: bool = False) -> Function:
    """A function of `least` arguments, or of `least` to `most`."""
    return Function(run, least, most or least, metered)
