"""The shape of a graph document: which keys there are and what each may hold.

Knows keys and types of values; what nodes and edges mean together is judged in
model/graph_rules.py, what a node's spec holds in specs.py, templates in templates.py.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from perdure.graph.form import Form, named
from perdure.graph.read import pointer
from perdure.model.durations import SECOND
from perdure.model.errors import InvalidName
from perdure.model.graph import CONTROL_TYPES
from perdure.model.graph_rules import Finding
from perdure.model.guesses import did_you_mean
from perdure.model.names import check_name, is_node_id
from perdure.model.policy import RetryPolicy, checked_policy

TOP_KEYS: Final = (
    *("name", "version", "description", "input", "config", "entry"),
    *("max_duration", "retention", "on_failure", "nodes", "edges", "output"),
)
NODE_KEYS: Final = ("id", "type", "spec", "retry", "timeout", "queue", "label")
EDGE_KEYS: Final = ("from", "to", "condition", "default")
RETRY_KEYS: Final = (
    *("attempts", "initial", "factor", "max_delay", "jitter", "max_elapsed"),
    *("retry_on", "never_on"),
)
ON_FAILURE: Final = ("continue", "drain", "cancel")
#: In the order documents are explained, for messages.
TYPES: Final = (
    *("HTTP", "TASK", "CHILD", "SWITCH", "FORK", "JOIN"),
    *("WAIT", "WAIT_FOR_SIGNAL", "WAIT_FOR_EVENT"),
)
WAITS: Final = frozenset({"WAIT", "WAIT_FOR_SIGNAL", "WAIT_FOR_EVENT"})
LATER_TYPES: Final = ("MAP",)
MAX_NODES: Final = 10_000
DEFAULT_RETENTION: Final = 30 * 86_400 * SECOND


class NodeEntry(msgspec.Struct, frozen=True):
    """One of `nodes`. `type` is "" when it is none of the known ones."""

    index: int
    id: str
    type: str
    spec: Any = None
    retry: RetryPolicy | None = None
    timeout: int | None = None
    queue: str | None = None
    label: str | None = None

    @property
    def at(self) -> str:
        """Its JSON pointer."""
        return f"/nodes/{self.index}"


class EdgeEntry(msgspec.Struct, frozen=True):
    """One of `edges`."""

    index: int
    source: str
    target: str
    condition: str | None = None
    default: bool = False

    @property
    def at(self) -> str:
        """Its JSON pointer."""
        return f"/edges/{self.index}"


class Document(msgspec.Struct, frozen=True):
    """A document's members, as far as they could be read."""

    name: str
    version: str | None
    description: str
    input: Any
    entry: str | None
    max_duration: int | None
    retention: int
    on_failure: Any
    nodes: tuple[NodeEntry, ...]
    edges: tuple[EdgeEntry, ...]
    output: Any = None


def read_document(value: dict[str, Any], findings: list[Finding]) -> Document:
    """The document's parts; all that is wrong with its shape goes to `findings`."""
    form = Form(value, "", findings)
    form.only(TOP_KEYS)
    if value.get("config") is not None:
        form.misplaced(
            "config",
            "this version does not check the config against a schema yet",
            "take it out; templates read what a start gives as config.<key>",
        )
    return Document(
        name=_name(form, "name", '"name": "order"') or "",
        version=form.text("version", 64, 'use text, such as "3" or "2025-06"'),
        description=form.typed("description", str) or "",
        input=value.get("input"),
        entry=form.typed("entry", str, "write the id of a node"),
        max_duration=_positive(form, "max_duration", "leave it out for no end"),
        retention=_positive(form, "retention", "leave it out for 30 days") or DEFAULT_RETENTION,
        on_failure=form.choice("on_failure", ON_FAILURE) or "continue",
        nodes=_nodes(form),
        edges=_edges(form),
        output=value.get("output"),
    )


def _name(form: Form, key: str, example: str) -> str | None:
    if not form.required(key, example):
        return None
    try:
        return check_name(form.value[key], key)
    except InvalidName as error:
        form.problem(key, str(error))
        return None


def _positive(form: Form, key: str, otherwise: str) -> int | None:
    duration = form.duration(key)
    if duration == 0:
        form.problem(key, "this is no time at all", otherwise)
        return None
    return duration


def _nodes(top: Form) -> tuple[NodeEntry, ...]:
    items = top.items("nodes")
    if not items and isinstance(top.value.get("nodes", []), list):
        top.problem("nodes" if "nodes" in top.value else None, "there are no nodes", "add one")
    if len(items) > MAX_NODES:
        top.problem("nodes", f"{len(items):,} nodes, at most {MAX_NODES:,}", "split the graph")
        items = []
    at = pointer(top.at, "nodes")
    entries = (_node(i, item, pointer(at, i), top.findings) for i, item in enumerate(items))
    return tuple(entry for entry in entries if entry is not None)


def _node(index: int, item: Any, at: str, findings: list[Finding]) -> NodeEntry | None:
    named_node = isinstance(item, dict) and isinstance(item.get("id"), str)
    example = 'write {"id": "fetch", "type": "HTTP", "spec": {…}}'
    form = Form(item, at, findings, item["id"] if named_node else None, example)
    if not isinstance(item, dict):
        return None
    form.only(NODE_KEYS)
    if form.required("id", '"id": "fetch"') and not is_node_id(item["id"]):
        form.problem(
            "id",
            f"{named(item['id'])} cannot be a node's id",
            "use letters, digits, _ and -, starting with a letter or _ and not ending in -",
        )
    kind = _node_type(form)
    label = form.text("label")
    if kind in CONTROL_TYPES | WAITS:
        for key in ("retry", "timeout", "queue"):
            if key in item:
                message = f'a {kind} runs nothing: it has no "{key}"'
                form.misplaced(key, message, _instead(kind, key))
        retry, timeout, queue = None, None, None
    else:
        retry, timeout, queue = _retry(form), form.duration("timeout"), None
        if item.get("queue") is not None:
            form.problem("queue", "this version does not have queues yet", "take it out")
    if not named_node:
        return None
    return NodeEntry(index, item["id"], kind, item.get("spec"), retry, timeout, queue, label)


def _instead(kind: str, key: str) -> str:
    if key != "timeout" or kind not in WAITS - {"WAIT"}:
        return "take it out"
    said = "timeout" if kind == "WAIT_FOR_SIGNAL" else "timeout_seconds"
    return f'say how long it waits as "{said}" of its spec'


def _node_type(form: Form) -> str:
    if not form.required("type", f'"type": one of {", ".join(TYPES)}'):
        return ""
    kind = form.value["type"]
    if isinstance(kind, str) and kind in TYPES:
        return kind
    if kind in LATER_TYPES:
        form.problem("type", f"this version has no {kind} nodes yet", f"use {', '.join(TYPES)}")
    else:
        hint = did_you_mean(kind.upper() if isinstance(kind, str) else "", TYPES)
        form.problem("type", f"{named(kind)} is no type of node", hint)
    return ""


def _retry(node: Form) -> RetryPolicy | None:
    value = node.value.get("retry")
    if value is None:
        return None
    if not isinstance(value, dict):
        node.problem("retry", f"this is {named(value)}, not an object", 'write {"attempts": 3}')
        return None
    form = Form(value, pointer(node.at, "retry"), node.findings, node.node)
    form.only(RETRY_KEYS)
    if not form.required("attempts", '"attempts": 3'):
        return None
    options: dict[str, Any] = {"attempts": value["attempts"]}
    before = len(form.findings)
    if "max_delay" in value:
        # null says no cap; an absent one has the default cap (D-35).
        options["max_delay"] = form.duration("max_delay") or 0
    for key in ("initial", "max_elapsed"):
        if value.get(key) is not None:
            options[key] = form.duration(key)
    for key in ("factor", "jitter"):
        if value.get(key) is not None:
            options[key] = value[key]
    for key in ("retry_on", "never_on"):
        options[key] = _kinds(form, key)
    if len(form.findings) > before:
        return None
    policy: RetryPolicy | None = form.checked(None, lambda: checked_policy(**options))
    return policy


def _kinds(form: Form, key: str) -> tuple[str, ...]:
    kinds = form.items(key)
    for index, kind in enumerate(kinds):
        if not isinstance(kind, str) or not kind:
            message = f"{named(kind)} is not a kind of failure"
            form.problem(key, message, 'use text, such as "card-declined"', index)
    return tuple(kind for kind in kinds if isinstance(kind, str))


def _edges(top: Form) -> tuple[EdgeEntry, ...]:
    at = pointer(top.at, "edges")
    items, nodes = top.items("edges"), top.value.get("nodes")
    if isinstance(nodes, list) and len(nodes) > MAX_NODES:
        items = []  # of nodes that were not read: complaints of them would hide the one that counts
    entries = (_edge(i, item, pointer(at, i), top.findings) for i, item in enumerate(items))
    return tuple(entry for entry in entries if entry is not None)


def _edge(index: int, item: Any, at: str, findings: list[Finding]) -> EdgeEntry | None:
    form = Form(item, at, findings, None, 'write {"from": "fetch", "to": "ship"}')
    if not isinstance(item, dict):
        return None
    form.only(EDGE_KEYS)
    ends = []
    for key in ("from", "to"):
        if form.required(key, f'"{key}": the id of a node'):
            ends.append(form.typed(key, str, "write the id of a node"))
    condition = form.typed("condition", str, 'write "{{ … }}"')
    default = form.typed("default", bool) or False
    if len(ends) < 2 or None in ends:
        return None
    return EdgeEntry(index, ends[0], ends[1], condition, default)
