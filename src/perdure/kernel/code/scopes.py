"""Scopes: what is to be taken back together. A call tells the scope that it is made in.

Owns which scope is the innermost; what scopes there are, and what they do, is a door's business
(flow/undoing.py).
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Protocol


class Scope(Protocol):
    """Who has to know which calls are made within it: what they do may have to be taken back.
    `cleaning`: what is called takes back what was done; `undoes`: the first call that it may be
    of."""

    cleaning: bool
    undoes: str | None

    def made(self, node: str, /) -> None:
        """A call that may have an effect is made."""


#: What `undoes` is where it may be of a call before the scope, and nobody says of which.
EARLIER: Final = ""
#: The innermost scope that a call is made in.
SCOPE: Final[ContextVar[Scope | None]] = ContextVar("perdure_scope", default=None)
