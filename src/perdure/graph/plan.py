"""From a checked document to the GraphPlan the kernel decides by."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.expr import References
from perdure.graph.document import Document, NodeEntry
from perdure.graph.form import templated
from perdure.graph.templates import Templates
from perdure.graph.waits import OLDER_TYPES, EventSpec
from perdure.kernel.plan import GraphPlan, PlannedEdge, PlannedNode, SpecTemplate
from perdure.model.durations import microseconds
from perdure.model.graph import CHILD, GraphShape

Reads = tuple[str, ...] | None


def build_plan(
    document: Document, shape: GraphShape, templates: Templates, version: str, digest: str
) -> GraphPlan:
    """The plan of a document without problems."""
    rank = {node: index for index, node in enumerate(shape.types)}
    reads = _reads(shape, templates, rank)
    output_reads = _union([r.refs for r in templates.readings if r.what == "output"], rank)
    choices: dict[str, tuple[PlannedEdge, ...]] = {
        node: () for node, kind in shape.types.items() if kind == "SWITCH"
    }
    for edge in document.edges:
        if edge.source in choices:
            condition = templates.conditions.get(edge.index)
            choices[edge.source] += (PlannedEdge(edge.target, condition, edge.default),)
    return GraphPlan(
        name=document.name,
        version=version,
        hash=digest,
        shape=shape,
        nodes={node.id: _planned(node, templates, reads[node.id]) for node in document.nodes},
        choices=choices,
        entry=document.entry or (shape.entries[0] if len(shape.entries) == 1 else None),
        output=templates.output,
        output_reads=output_reads,
        on_failure=document.on_failure,
        referenced=_referenced([*reads.values(), output_reads]),
    )


def _planned(node: NodeEntry, templates: Templates, reads: Reads) -> PlannedNode:
    spec = node.spec if isinstance(node.spec, dict) else {}
    step = spec.get("step") if node.type == "TASK" else None
    workflow = spec.get("workflow") if node.type == CHILD else None
    timeout = node.timeout
    if timeout is None and node.type == "HTTP" and spec.get("timeout") is not None:
        # The time of a request is that of its attempt.
        stated = spec["timeout"]
        timeout = None if templated(stated) else microseconds(stated)
    template: SpecTemplate = templates.specs[node.id]
    if node.type == "WAIT_FOR_EVENT":
        template = EventSpec(template)
    return PlannedNode(
        id=node.id,
        type=OLDER_TYPES.get(node.type, node.type),
        spec=template,
        reads=reads,
        retry=node.retry,
        timeout=timeout,
        queue=node.queue,
        label=node.label,
        step=None if templated(step) else step,
        workflow=None if templated(workflow) else workflow,
        goes_on=node.type == "WAIT_FOR_SIGNAL" and spec.get("on_timeout") == "continue",
    )


def _reads(shape: GraphShape, templates: Templates, rank: dict[str, int]) -> dict[str, Reads]:
    """Node → the nodes whose outputs it can ask for, in document order; None = any."""
    refs: dict[str | None, list[References]] = {}
    for reading in templates.readings:
        refs.setdefault(reading.node, []).append(reading.refs)
    result: dict[str, Reads] = {}
    for node, kind in shape.types.items():
        passed_on: tuple[str, ...] = ()
        if kind == "SWITCH":
            # A SWITCH passes its predecessor's output through.
            passed_on = tuple(edge.source for edge in shape.incoming[node])
        result[node] = _union(refs.get(node, ()), rank, passed_on)
    return result


def _union(refs: Iterable[References], rank: dict[str, int], more: Iterable[str] = ()) -> Reads:
    names = set(more)
    for one in refs:
        if one.computed:
            return None
        names.update(one.tasks)
    return tuple(sorted(names, key=rank.__getitem__))


def _referenced(reads: Iterable[Reads]) -> frozenset[str] | None:
    names: set[str] = set()
    for some in reads:
        if some is None:
            return None
        names.update(some)
    return frozenset(names)
