"""How the open step calls of a workflow are executed, as the engine asks: by node.

A graph knows this of all its nodes beforehand; code says it as it calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perdure.kernel.code.call import Call
from perdure.kernel.code.calls import Calls
from perdure.kernel.protocol import Handling


class Handlings(Mapping[str, Handling]):
    """A view of the open step calls."""

    __slots__ = ("_calls",)

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __getitem__(self, node: str) -> Handling:
        call = self._calls.open[node]
        how = call.how if type(call) is Call else None
        if how is None:
            raise KeyError(node)
        return how

    def __iter__(self) -> Iterator[str]:
        return (node for node, call in self._calls.open.items() if getattr(call, "how", None))

    def __len__(self) -> int:
        return sum(1 for _ in self)
