"""The account of a killed run: what happened before the kill and after it, and whether that is
what was promised.

Pure: it compares what was recorded at the kill and at the end with what the outside world says
it was asked to do. The witnesses are the shop's and the warehouse's own logs, not the engine's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from perdure.cli.nodes import NodeBook, NodeView

Standing = Literal["recorded", "under way", "not reached"]

#: Nodes that decide and never ask anybody for anything.
DECIDING = frozenset({"SWITCH", "FORK", "JOIN"})


class Account(msgspec.Struct, frozen=True):
    """One node. `standing`: how it stood at the kill. `asked`: how often the outside was asked,
    in all. `same`: what was recorded at the kill is still what is recorded."""

    node: str
    type: str
    standing: Standing
    status: str
    asked: int
    same: bool = True

    @property
    def again(self) -> bool:
        """Whether it was done a second time."""
        return self.asked > 1

    @property
    def before(self) -> str:
        """Before the kill, in words."""
        if self.standing == "under way":
            return "under way; nobody wrote down how it ended"
        if self.standing == "not reached":
            return "not reached yet"
        if self.status == "skipped":
            return "not needed for this order"
        return "decided and recorded" if self.type in DECIDING else "done and recorded"

    @property
    def after(self) -> str:
        """After the kill, in words."""
        if self.standing == "recorded":
            if self.type in DECIDING and self.status == "completed":
                return "not decided again"
            return "not done again" if self.status == "completed" and self.asked else ""
        if self.status == "skipped":
            return "not needed for this order"
        if self.standing == "under way":
            return "done again" if self.again else "done (it had not really begun)"
        return "decided" if self.type in DECIDING else "done"


class Check(msgspec.Struct, frozen=True):
    """Something that was promised, and whether it held."""

    promise: str
    held: bool


def accounts(
    types: Mapping[str, str], then: NodeBook, now: NodeBook, asked: Counter[str]
) -> list[Account]:
    """One account for each node of the document, in its order."""
    return [
        Account(
            node,
            type,
            _standing(then.nodes.get(node)),
            now.nodes[node].status if node in now.nodes else "not reached",
            asked[node],
            _same(then.nodes.get(node), now.nodes.get(node)),
        )
        for node, type in types.items()
    ]


def checks(
    found: Sequence[Account], status: str, charged: Sequence[Any], amount: float
) -> list[Check]:
    """What was promised about the run, each held or not."""
    recorded = [a for a in found if a.standing == "recorded"]
    under_way = [a for a in found if a.standing == "under way"]
    others = [a for a in found if a.standing == "not reached"]
    once = all(a.asked == _due(a) for a in recorded + others)
    return [
        Check("The order was finished.", status == "completed"),
        Check("What was recorded before the kill was neither lost nor changed.",
              all(a.same for a in recorded)),
        Check("No step that was recorded ran again, and none was left out.", once),
        Check("What ran twice was under way at the kill.",
              all(a.asked in (1, 2) for a in under_way)),
        Check(f"The card was charged once: {amount:.2f}.", list(charged) == [amount]),
    ]  # fmt: skip


def _due(account: Account) -> int:
    """How often a node that was not under way asks the outside: once if it ran at all."""
    return int(account.type not in DECIDING and account.status == "completed")


def _standing(view: NodeView | None) -> Standing:
    if view is None:
        return "not reached"
    return "under way" if view.status == "pending" else "recorded"


def _same(then: NodeView | None, now: NodeView | None) -> bool:
    """Whether an outcome recorded at the kill is there unchanged."""
    if then is None or then.status == "pending":
        return True
    if now is None:
        return False
    return (then.status, then.output, then.branches) == (now.status, now.output, now.branches)
