"""GraphPlan: a graph with its templates compiled, as the machine decides by it.

The kernel knows templates only through these protocols; whoever loads a document fills them in.
A plan is immutable and shared by all runs of its definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import force_setattr

from perdure.kernel.protocol import Codec, Handling
from perdure.model.durations import SECOND
from perdure.model.graph import CHILD, CONTROL_TYPES, SAGA, WAIT_TYPES, GraphShape
from perdure.model.policy import NO_RETRY, RetryPolicy

#: What the node id of an undo ends with.
UNDO: Final = "~undo"
#: The ends after which what was done is undone: a node failed for good, the run reached its
#: deadline, it was canceled.
UNDO_ON: Final = frozenset({"failure", "timeout", "cancel"})


class SpecTemplate(Protocol):
    """A node's spec (or the document's output) with its templates compiled."""

    @property
    def constant(self) -> bool:
        """True when there is nothing to evaluate: render gives the same value every time."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """JSON pointer → template text, for the strings that read `secrets`; render leaves the
        text there and the dispatcher fills it in for each attempt."""

    def render(self, scope: Mapping[str, Any], /) -> Any:
        """The value with every template evaluated. Any exception is the node's failure."""


class Condition(Protocol):
    """An edge's condition."""

    def evaluate(self, scope: Mapping[str, Any], /) -> bool:
        """Its truth by the forgiving rules (G-63). Any exception is a routing error."""


class Gate(Protocol):
    """A step's `when`."""

    def opens(self, input: Raw | None, codec: Codec, /) -> bool:
        """Whether the step runs in a run of this input. Any exception is the node's failure."""


class PlannedUndo(msgspec.Struct, frozen=True):
    """How what a node did is undone: node `X~undo`. `timeout` in µs per attempt, 0 = no limit.
    `unknown`: also where nobody knows what the node did. `code` becomes Handling.step."""

    retry: RetryPolicy = NO_RETRY
    timeout: int | None = None
    unknown: bool = True
    code: Any = None


class Upstream:
    """The nodes that stand before one. Looked for when somebody asks: as a list, each node of a
    long line would hold all of them."""

    __slots__ = ("_node", "_shape")

    def __init__(self, shape: GraphShape, node: str) -> None:
        self._shape = shape
        self._node = node

    def __contains__(self, node: object) -> bool:
        return isinstance(node, str) and self._shape.leads(node, self._node)


class PlannedNode(msgspec.Struct, frozen=True):
    """One node. `reads`: the nodes whose outputs its spec and its outgoing conditions can read,
    and for a SWITCH those it may pass through; None when that cannot be told. `step`: the step a
    TASK names when its name is plain text; `workflow`: the definition a CHILD names so. `timeout`
    in µs per attempt: None = the handler's default (of a CHILD none), 0 = no limit."""

    id: str
    type: str
    spec: SpecTemplate
    reads: tuple[str, ...] | None = ()
    retry: RetryPolicy | None = None
    timeout: int | None = None
    queue: str | None = None
    label: str | None = None
    step: str | None = None
    workflow: str | None = None
    #: Of a wait for a signal: whether it completes when it times out, and does not fail.
    goes_on: bool = False
    #: How it is undone, where the definition says that.
    undo: PlannedUndo | None = None
    #: Becomes Handling.step: the very code to run.
    code: Any = None
    #: Asked once, when the node is reached; where it says no, the node is skipped, and what
    #: follows runs all the same (SX-1).
    gate: Gate | None = None
    #: Its spec's own, looked up once; `secrets` None where there are none.
    constant: bool = False
    secrets: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "constant", self.spec.constant)
        force_setattr(self, "secrets", self.spec.secrets or None)

    @property
    def works(self) -> bool:
        """Whether a worker executes it: a task is dispatched, and routing stops here."""
        kind = self.type
        return kind not in CONTROL_TYPES and kind not in WAIT_TYPES and kind != CHILD

    @property
    def plainly_works(self) -> bool:
        """Whether a worker executes it always, and without secrets."""
        return self.works and self.gate is None and self.secrets is None


class PlannedEdge(msgspec.Struct, frozen=True):
    """An outgoing edge of a SWITCH: condition None = always taken, unless it is the default."""

    target: str
    condition: Condition | None = None
    default: bool = False


class GraphPlan(msgspec.Struct, frozen=True):
    """Everything a GraphMachine reads about its definition. The fields from `leaves` on are
    worked out here, once for all runs."""

    name: str
    version: str
    hash: str
    shape: GraphShape
    nodes: Mapping[str, PlannedNode]
    #: Outgoing edges of SWITCH nodes, in document order.
    choices: Mapping[str, tuple[PlannedEdge, ...]]
    #: The start node; None when a start must name one (several nodes without incoming edges).
    entry: str | None
    #: The document's `output`, or None: the outputs of the completed leaves.
    output: SpecTemplate | None = None
    output_reads: tuple[str, ...] | None = ()
    on_failure: Literal["continue", "drain", "cancel"] = "continue"
    #: The ends after which what was done is undone; without any undo, nothing is.
    undo_on: frozenset[str] = UNDO_ON
    #: How long a run that is to stop waits for attempts without a timeout of their own, in µs.
    grace: int = 30 * SECOND
    #: Whether a run begins at every node without incoming edges, where `entry` is None.
    all_entries: bool = False
    #: Whether its values are recorded by the codec of the typed doors, as a saga's are.
    typed: bool = False
    #: Nodes whose output some template may read; None = any. Others are not kept in memory.
    referenced: frozenset[str] | None = None
    #: The nodes without outgoing edges, in document order.
    leaves: tuple[str, ...] = ()
    #: Nodes whose outputs are worth keeping in memory; None = all.
    kept: frozenset[str] | None = None
    #: How the nodes' attempts are executed.
    handlings: Mapping[str, Handling] = {}
    #: Node -> the worker node that alone follows it and follows it alone: what the readiness rule
    #: would find once it completed.
    straight: Mapping[str, PlannedNode] = {}
    #: The worker node that every run begins at, where there is one; and the nodes that nothing
    #: follows, whatever they come to.
    opening: PlannedNode | None = None
    closing: frozenset[str] = frozenset()
    #: Whether there are CHILD nodes.
    may_ask: bool = False
    #: Whether a run may have something to undo before it ends; and `X~undo` -> how.
    undoes: bool = False
    undos: Mapping[str, PlannedUndo] = {}
    #: Inputs that are the same in every run, as JSON text: filled in when first asked for.
    constants: dict[str, Raw] = {}

    def __post_init__(self) -> None:
        force_setattr(self, "leaves", tuple(self.shape.leaves()))
        force_setattr(self, "kept", kept_outputs(self))
        undos = {undo_of(id): node.undo for id, node in self.nodes.items() if node.undo is not None}
        force_setattr(self, "undos", undos)
        force_setattr(self, "undoes", bool(undos and self.undo_on))
        force_setattr(self, "handlings", handlings_of(self))
        force_setattr(self, "straight", straight_edges(self))
        force_setattr(self, "opening", opening_of(self))
        force_setattr(self, "closing", frozenset(self.leaves) - self.choices.keys())
        force_setattr(self, "may_ask", any(node.type == CHILD for node in self.nodes.values()))


def undo_of(node: str) -> str:
    """The node by which a node is undone."""
    return node + UNDO


def handlings_of(plan: GraphPlan) -> dict[str, Handling]:
    """How the attempts of its nodes, and of their undos, are executed."""
    handlings = {
        id: Handling(node.type, node.timeout, node.code, True, Upstream(plan.shape, id))
        if node.type == SAGA
        else Handling(node.type, node.timeout, node.code)
        for id, node in plan.nodes.items()
    }
    for id, undo in plan.undos.items():
        handlings[id] = Handling(SAGA, undo.timeout, undo.code, True, None)
    return handlings


def straight_edges(plan: GraphPlan) -> dict[str, PlannedNode]:
    """The edges that are the only one out of their source and into their target, where the source
    is no SWITCH and the target is executed by a worker, always and without secrets."""
    found = {}
    for node, after in plan.shape.successors.items():
        if len(after) == 1 and node not in plan.choices:
            follower = plan.nodes[after[0]]
            if follower.plainly_works and len(plan.shape.incoming[follower.id]) == 1:
                found[node] = follower
    return found


def opening_of(plan: GraphPlan) -> PlannedNode | None:
    """The node that a run begins at which is not told otherwise, if it is the only one and is
    executed by a worker, always and without secrets."""
    entries = plan.shape.entries if plan.entry is None and plan.all_entries else (plan.entry,)
    first = plan.nodes.get(entries[0] or "") if len(entries) == 1 else None
    return first if first is not None and first.plainly_works else None


def kept_outputs(plan: GraphPlan) -> frozenset[str] | None:
    """What a template may read or a SWITCH pass through, and what the run returns."""
    if plan.referenced is None or plan.output_reads is None:
        return None
    kept = set(plan.referenced) | set(plan.output_reads)
    if plan.output is None:
        kept.update(plan.leaves)
    return frozenset(kept)
