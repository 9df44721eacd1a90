"""Draws graphs with everything that routes: forks, joins, switches, reads, failures to come.

What each node will do is drawn with it and not while it runs, so that the end of a run can be
worked out beforehand (expected.py), whatever the order of its reports.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from hypothesis import strategies as st

from perdure.kernel.plan import GraphPlan
from tests.unit.kernel.harness import plan_of

Kind = Literal["TASK", "SWITCH", "FORK", "JOIN", "WAIT", "WAIT_FOR_SIGNAL", "CHILD"]
OnFailure = Literal["continue", "drain", "cancel"]
#: What nodes may wait for: few names, so that several wait for one.
SIGNALS = ("go", "stop")


class Node(msgspec.Struct, frozen=True):
    """`reads`: the node whose output its spec reads, without asking. `number`: its output is
    {"n": number}. `tries`: attempts that fail before the last one. `ends`: how that one ends.
    A wait lasts `number` seconds, -1 cannot be; a wait for `signal`, and one for a child, gives up
    after them, 0 = never.
    """

    id: str
    kind: Kind
    reads: str | None = None
    number: int = 0
    tries: int = 0
    ends: Literal["well", "failed", "permanent"] = "well"
    signal: str = ""


class Link(msgspec.Struct, frozen=True):
    """An edge. `asks`: of a SWITCH's edge, what it depends on.

    True and False are constants; a node's id asks whether its number is over 0; "?" and an id
    asks that only if the node has an output; "broken" cannot be evaluated.
    """

    source: str
    target: str
    asks: bool | str | None = None
    default: bool = False


class Drawn(msgspec.Struct, frozen=True):
    """A graph whose first node is its only entry; nodes stand in an order edges follow."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    on_failure: OnFailure = "continue"
    #: The node whose number the run returns; without one, what its leaves give.
    returns: str | None = None

    def incoming(self, node: str) -> list[Link]:
        return [link for link in self.links if link.target == node]

    def outgoing(self, node: str) -> list[Link]:
        return [link for link in self.links if link.source == node]

    def node(self, id: str) -> Node:
        return next(node for node in self.nodes if node.id == id)

    def plan(self) -> GraphPlan:
        output = {"n": f"{{{{tasks.{self.returns}.output.n}}}}"}
        return plan_of(
            [_document_node(n) for n in self.nodes],
            [_edge(e) for e in self.links],
            on_failure=self.on_failure,
            **({} if self.returns is None else {"output": output}),
        )


def _document_node(node: Node) -> dict[str, Any]:
    if node.kind == "WAIT":
        # As a template: what is plainly wrong would not get past the document's checks.
        spec = {"duration_seconds": f"{{{{{node.number}}}}}"}
        return {"id": node.id, "type": node.kind, "spec": spec}
    if node.kind == "WAIT_FOR_SIGNAL":
        spec = {"signal": node.signal, "timeout_seconds": f"{{{{{node.number}}}}}"}
        return {"id": node.id, "type": node.kind, "spec": spec}
    if node.kind == "CHILD":
        asks = {"spec": {"workflow": "other"}, "timeout": node.number}
        return {"id": node.id, "type": "CHILD", **asks, "retry": {"attempts": node.tries + 1}}
    if node.kind != "TASK":
        return {"id": node.id, "type": node.kind}
    work: dict[str, Any] = {"step": "work"}
    if node.reads is not None:
        work["input"] = {"n": f"{{{{tasks.{node.reads}.output.n}}}}"}
    return {"id": node.id, "type": "TASK", "spec": work, "retry": {"attempts": node.tries + 1}}


def _edge(link: Link) -> dict[str, Any]:
    edge: dict[str, Any] = {"from": link.source, "to": link.target}
    if link.default:
        edge["default"] = True
    if link.asks is not None:
        edge["condition"] = "{{" + _expression(link.asks) + "}}"
    return edge


def _expression(asks: bool | str) -> str:
    if isinstance(asks, bool):
        return "true" if asks else "false"
    if asks == "broken":
        return "input.there.is.nothing"
    node = asks.removeprefix("?")
    over = f"tasks.{node}.output.n > 0"
    return over if node == asks else f"has(tasks.{node}.output) && {over}"


@st.composite
def graphs(draw: st.DrawFn, *, failing: bool = True, waiting: bool = False, most: int = 9) -> Drawn:
    """Any sound graph of up to `most` nodes; `failing` lets nodes and conditions fail, `waiting`
    lets nodes wait and failures stop the rest."""
    count = draw(st.integers(1, most))
    kinds = draw(st.lists(KINDS_THAT_WAIT if waiting else KINDS, min_size=count, max_size=count))
    ids = [f"n{i}" for i in range(count)]
    before: list[set[str]] = []  # the ancestors of each node
    nodes: list[Node] = []
    links: list[Link] = []
    for index, (id, kind) in enumerate(zip(ids, kinds, strict=True)):
        sources = draw(_sources(index))
        before.append(set().union(*({ids[s]} | before[s] for s in sources)) if sources else set())
        for source in sources:
            switch = kinds[source] == "SWITCH"
            links.append(draw(_link(ids, kinds, source, index, before)) if switch
                         else Link(ids[source], id))  # fmt: skip
        readable = sorted(n for n in before[index] if kinds[ids.index(n)] == "TASK")
        nodes.append(draw(_node(id, kind, readable, failing)))
    if not failing:
        links = [msgspec.structs.replace(e, asks=_harmless(e.asks)) for e in links]
    on_failure: OnFailure = "continue"
    if waiting:
        on_failure = draw(st.sampled_from(["continue", "drain", "cancel"]))
    return Drawn(tuple(nodes), tuple(_one_default(links)), on_failure)


KINDS: st.SearchStrategy[Kind] = st.sampled_from(
    ["TASK", "TASK", "TASK", "SWITCH", "SWITCH", "FORK", "JOIN"]
)
KINDS_THAT_WAIT: st.SearchStrategy[Kind] = st.one_of(
    KINDS, st.sampled_from(["WAIT", "WAIT_FOR_SIGNAL", "WAIT_FOR_SIGNAL", "CHILD", "CHILD"])
)


def _sources(index: int) -> st.SearchStrategy[list[int]]:
    if index == 0:
        return st.just([])
    return st.lists(st.integers(0, index - 1), min_size=1, max_size=3, unique=True)


@st.composite
def _node(draw: st.DrawFn, id: str, kind: Kind, readable: list[str], failing: bool) -> Node:
    if kind == "WAIT":
        return Node(id, kind, number=draw(st.sampled_from([0, 1, 60, 3600, -1])))
    if kind == "WAIT_FOR_SIGNAL":
        number = draw(st.sampled_from([0, 0, 1, 60, -1]))
        return Node(id, kind, number=number, signal=draw(st.sampled_from(SIGNALS)))
    if kind == "CHILD":
        number, tries = draw(st.sampled_from([0, 0, 60])), draw(st.integers(0, 2))
        return Node(id, kind, number=number, tries=tries)
    if kind != "TASK":
        return Node(id, kind)
    reads = draw(st.none() | st.sampled_from(readable)) if readable and failing else None
    ends = draw(st.sampled_from(["well"] * 5 + ["failed", "permanent"])) if failing else "well"
    tries = 0 if ends == "permanent" else draw(st.integers(0, 2))
    return Node(id, kind, reads, draw(st.integers(-1, 1)), tries, ends)


@st.composite
def _link(
    draw: st.DrawFn, ids: list[str], kinds: list[Kind], source: int, target: int,
    before: list[set[str]],
) -> Link:  # fmt: skip
    askable = sorted(n for n in before[source] if kinds[ids.index(n)] == "TASK")
    asks: list[bool | str | None] = [True, False, None, "default", "broken"]
    asks += [*askable, *(f"?{n}" for n in askable)] * 2
    ask = draw(st.sampled_from(asks))
    if ask == "default":
        return Link(ids[source], ids[target], default=True)
    return Link(ids[source], ids[target], ask)


def _one_default(links: list[Link]) -> list[Link]:
    """At most one default edge leaves each switch."""
    seen: set[str] = set()
    kept = []
    for link in links:
        again = link.default and link.source in seen
        kept.append(Link(link.source, link.target) if again else link)
        if link.default:
            seen.add(link.source)
    return kept


def _harmless(asks: bool | str | None) -> bool | str | None:
    """The same question, asked so that it cannot fail."""
    if not isinstance(asks, str):
        return asks
    return True if asks == "broken" else f"?{asks.removeprefix('?')}"
