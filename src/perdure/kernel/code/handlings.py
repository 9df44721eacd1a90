"""How the open step calls of a workflow are executed, as the engine asks: by node.

A graph knows this of all its nodes beforehand; code says it as it calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perdure.kernel.code.call import AnyCall
from perdure.kernel.code.callbacks import Timer
from perdure.kernel.protocol import Handling


class Handlings(Mapping[str, Handling]):
    """A view of the open step calls."""

    __slots__ = ("_open",)

    def __init__(self, open: Mapping[str, AnyCall | Timer]) -> None:
        self._open = open

    def __getitem__(self, node: str) -> Handling:
        how = self._open[node].how
        if how is None:
            raise KeyError(node)
        return how

    def __iter__(self) -> Iterator[str]:
        return (node for node, call in self._open.items() if call.how is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
