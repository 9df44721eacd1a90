"""matches(): whether a pattern is found anywhere in a string, in time linear in the string."""

from __future__ import annotations

from typing import Any

from perdure.expr.budget import Env
from perdure.expr.functions.function import of
from perdure.expr.patterns.matching import compiled


def matches(env: Env, text: Any, pattern: Any) -> Any:
    """Whether the pattern is found anywhere in the text."""
    if type(text) is not str or type(pattern) is not str:
        return NotImplemented
    return compiled(pattern).search(env, text)


PLAIN = {"matches": of(matches, 2, metered=True)}
METHODS = {"matches": of(matches, 2, metered=True)}
