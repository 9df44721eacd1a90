"""The account of an order whose workers were killed: what the journal says of each step, beside
what others say they were asked to do, and whether that is what was promised.

Pure. The witnesses are the shop's and the warehouse's own logs, not the engine's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from perdure.cli.node_view import NodeView
from perdure.cli.nodes import NodeBook
from perdure.cli.output import took

#: Nodes that ask somebody to do something.
ASKING: Final = frozenset({"HTTP", "TASK"})
#: What is done when somebody does what a node asks for.
DEEDS: Final = {"charge": "charged", "reserve": "reserved", "ship": "shipped", "notify": "told"}


class Kill(msgspec.Struct, frozen=True):
    """A worker was killed. `then`: what was recorded at that moment; `taker`: who took the run
    over, `after` so many seconds; "" and None where there was nothing to take over."""

    worker: str
    pid: int
    then: NodeBook
    taker: str = ""
    after: float | None = None

    @property
    def under_way(self) -> list[str]:
        """What was going on, or waited."""
        return [view.node for view in self.then.having("pending", "waiting")]

    @property
    def open_undos(self) -> list[str]:
        """The steps whose undo was going on."""
        return [node.removesuffix("~undo") for node in self.under_way if node.endswith("~undo")]


class Account(msgspec.Struct, frozen=True):
    """One node. `by`: who recorded its end; `asked`: how often others were asked, `busy` of these
    refused with 503; `did`: how often they did it; `keys`: how many idempotency keys they saw;
    `same`: what was recorded at each kill is still what is recorded."""

    node: str
    type: str
    view: NodeView | None
    by: str = ""
    asked: int = 0
    busy: int = 0
    did: int = 0
    keys: int = 0
    same: bool = True

    @property
    def journal(self) -> str:
        """What the journal says, in words."""
        view = self.view
        if view is None:
            return "not reached"
        if view.status != "completed":
            return view.status
        waited = "" if view.seconds is None else f" after {took(view.seconds)}"
        if view.branches is not None:
            return f"chose {', '.join(view.branches)}"
        if view.signal:
            return f"got signal {view.signal}{waited}"
        if self.type == "WAIT":
            return f"waited{waited.replace(' after', '')}"
        again = f", begun again {times(view.lost)}" if view.lost else ""
        return f"done at attempt {view.attempt}{again}" if view.attempt else "passed"

    @property
    def others(self) -> str:
        """What the others' logs say, in words."""
        if not self.asked:
            return ""
        busy = f", busy {times(self.busy)}" if self.busy else ""
        keys = "" if self.asked == 1 else " with one key" if self.keys == 1 else " with many keys"
        deed = DEEDS.get(self.node)
        did = f"; {deed} {times(self.did)}" if deed else ""
        return f"asked {times(self.asked)}{keys}{busy}{did}"

    @property
    def fair(self) -> bool:
        """Whether others were asked as often as was promised: once for each attempt, and once
        more at most for each death of a worker that was at it."""
        if self.type not in ASKING:
            return not self.asked
        if self.view is None or self.view.status != "completed":
            return not self.asked
        return self.view.attempt <= self.asked <= self.view.attempt + self.view.lost

    @property
    def once(self) -> bool:
        """Whether what it asks for was done once, however often it was asked for."""
        needed = self.node in DEEDS and self.view is not None and self.view.status == "completed"
        return self.did == int(needed) and self.keys <= 1


class Check(msgspec.Struct, frozen=True):
    """Something that was promised, and whether it held."""

    promise: str
    held: bool


def accounts(
    types: Mapping[str, str],
    now: NodeBook,
    writers: Mapping[str, str],
    kills: Sequence[Kill],
    lines: Sequence[Mapping[str, Any]],
) -> list[Account]:
    """One account for each node of the document, in its order. `writers`: who recorded the end of
    each node; `lines`: the others' logs."""
    return [
        _account(node, type, now.nodes.get(node), writers.get(node, ""), kills, lines)
        for node, type in types.items()
    ]


def _account(
    node: str,
    type: str,
    view: NodeView | None,
    by: str,
    kills: Sequence[Kill],
    lines: Iterable[Mapping[str, Any]],
) -> Account:
    asked = [line for line in lines if line.get("asked") == node]
    did = [line for line in lines if line.get("did") == node]
    busy = [line for line in asked if line.get("busy")]
    keys = {line["key"] for line in asked + did}
    same = all(_same(kill.then.nodes.get(node), view) for kill in kills)
    return Account(node, type, view, by, len(asked), len(busy), len(did), len(keys), same)


def checks(
    found: Sequence[Account], kills: Sequence[Kill], status: str, charged: Any, amount: float
) -> list[Check]:
    """What was promised about the run, each held or not."""
    at = {account.node: account for account in found}
    dead = f"{len(kills)} of its workers were killed" if kills else "nobody was killed"
    return [
        Check(f"The order was finished, although {dead}.", status == "completed"),
        Check("What was recorded before a kill was neither lost nor changed.",
              all(account.same for account in found)),
        Check("No recorded step ran again, and none was left out: only what was under way at a "
              "kill was asked for once more.", all(account.fair for account in found)),
        Check("Whatever was asked for twice was done once: it came with the same key.",
              all(account.once for account in found)),
        Check(f"The card was charged once: {amount:.2f}.",
              at["charge"].once and list(charged) == [amount]),
        Check("The parcel was shipped once.", at["ship"].once and at["ship"].did == 1),
    ]  # fmt: skip


def writers_of(records: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> dict[str, str]:
    """Who recorded the end of each node: the worker that wrote the row."""
    found: dict[str, str] = {}
    for record in records:
        ends = record["do"] in ("CompleteTask", "FailTask", "ResolveWait")
        if ends or (record["do"] == "CreateTask" and record["status"] in ("completed", "skipped")):
            found[record["node"]] = names.get(record["writer"], "")
    return found


def times(number: int) -> str:
    """A number of times, in words."""
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _same(then: NodeView | None, now: NodeView | None) -> bool:
    """Whether an outcome recorded at a kill is there unchanged."""
    if then is None or then.status in ("pending", "waiting"):
        return True
    if now is None:
        return False
    return (then.status, then.output, then.branches) == (now.status, now.output, now.branches)
