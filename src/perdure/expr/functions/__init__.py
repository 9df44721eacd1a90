"""The functions of the language: one table of plain names, one of methods.

A function gets values, checked for nothing, and returns NotImplemented where it has no overload
for their kinds; the call site turns that into a fault with its position. A `metered` function
gets the evaluation's state first, because what it builds or compares grows with its arguments.
"""

from __future__ import annotations

from perdure.expr.functions import (
    conversions,
    encoders,
    formatting,
    lists,
    numeric,
    optionals,
    patterns,
    text,
    timing,
)
from perdure.expr.functions.function import Function

_MODULES = (
    conversions, encoders, formatting, lists, numeric, optionals, patterns, text, timing,
)  # fmt: skip

PLAIN: dict[str, Function] = {}
METHODS: dict[str, Function] = {}
for _module in _MODULES:
    PLAIN.update(_module.PLAIN)
    METHODS.update(_module.METHODS)
