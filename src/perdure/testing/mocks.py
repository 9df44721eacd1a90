"""Mocks: the world of a rehearsal. What steps answer, which signals come, when it begins.

Read from a mapping or a file of JSON or YAML, and checked against the document: a name that the
document does not have is an error and not a mock that is never used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from os import PathLike, fspath
from typing import Any, Final

import msgspec
from msgspec import UNSET

from perdure.graph.definition import Graph
from perdure.graph.source import format_of, read_source
from perdure.kernel.plan import PlannedNode
from perdure.model.definition import Definition
from perdure.model.durations import microseconds
from perdure.model.errors import GraphError, InvalidOptions, InvalidRequest
from perdure.model.graph import CHILD
from perdure.model.graph_rules import Finding
from perdure.model.guesses import did_you_mean
from perdure.model.moments import since_epoch
from perdure.testing.replies import Reply, replies_of
from perdure.testing.virtual import BEGIN

KEYS: Final = (
    *("input", "config", "now", "start_node", "steps", "default", "signals", "cancel"),
    *("secrets", "expect"),
)
SIGNAL_KEYS: Final = ("name", "value", "at")
#: Types of nodes that the world answers.
ANSWERED: Final = ("HTTP", "TASK", CHILD)
CANCEL_KEYS: Final = ("at", "reason")

MocksSource = Mapping[str, Any] | str | PathLike[str]


class Sent(msgspec.Struct, frozen=True):
    """A signal, or with `name` None a cancel. `at` in µs since the start."""

    at: int
    name: str | None
    value: Any = None


class Mocks(msgspec.Struct, frozen=True):
    """A table of mocks, read. `replies` by node id, of other graphs by "graph.id"; `now` in µs
    since the epoch."""

    replies: Mapping[str, tuple[Reply, ...]]
    default: tuple[Reply, ...] | None
    sent: tuple[Sent, ...]
    now: int
    input: Any
    config: Mapping[str, Any] | None
    start_node: str | None
    secrets: Mapping[str, str]
    expect: Mapping[str, Any]
    #: The replies that are given by the name of a step, or of a workflow.
    by_step: Mapping[str, tuple[Reply, ...]] = {}


def read_mocks(source: MocksSource | None) -> tuple[Mapping[str, Any], str]:
    """The table, and what to call it in messages. Raises InvalidRequest for a file that cannot be
    read."""
    if source is None:
        return {}, "mocks"
    if isinstance(source, Mapping):
        return source, "mocks"
    file = fspath(source)
    try:
        with open(file, "rb") as opened:  # noqa: PTH123  no need for a Path
            text = opened.read()
    except OSError as error:
        raise InvalidRequest(f"{file}: the file cannot be read: {error.strerror}") from None
    findings: list[Finding] = []
    try:
        table, _ = read_source(text, format_of(file, text), findings)
    except GraphError as error:
        raise InvalidRequest(f"{file}: {error}".replace("the document", "the file")) from None
    if findings:
        raise InvalidRequest("\n".join(f"{file}: {finding}" for finding in findings))
    return table, file


def mocks_for(
    graph: Graph,
    source: MocksSource | None,
    beside: Iterable[Definition[Any, Any]] = (),
    **given: Any,
) -> Mocks:
    """The mocks of a rehearsal of this graph, and of those `beside` it that it may ask for.
    `given` values replace those of the table.

    Raises InvalidRequest for what is misspelt or does not fit the document.
    """
    table, name = read_mocks(source)
    table = {**table, **{key: value for key, value in given.items() if value is not UNSET}}
    _only(table, KEYS, name)
    by_node, by_step = _steps(graph, list(beside), table.get("steps", {}), name)
    default = table.get("default", UNSET)
    return Mocks(
        replies=by_node,
        default=None if default is UNSET else replies_of(default, f"{name}: default", http=False),
        sent=_sent(table, name),
        now=_now(table.get("now"), name),
        input=table.get("input"),
        config=table.get("config"),
        start_node=table.get("start_node"),
        secrets=table.get("secrets") or {},
        expect=table.get("expect") or {},
        by_step=by_step,
    )


def _steps(
    graph: Graph, beside: Sequence[Definition[Any, Any]], steps: Any, name: str
) -> tuple[dict[str, tuple[Reply, ...]], dict[str, tuple[Reply, ...]]]:
    if steps is None:
        return {}, {}
    if not isinstance(steps, Mapping):
        raise InvalidRequest(f'{name}: "steps" must be an object: node id or step name → answer')
    nodes, workers = graph.plan.nodes, workers_of(graph, beside)
    called = {name for node in workers.values() for name in (node.step, node.workflow) if name}
    # Of names that only a run can tell, and of code, everything may be called.
    computed = any(
        node.type != "HTTP" and node.step is None and node.workflow is None
        for node in workers.values()
    ) or not all(isinstance(one, Graph) for one in beside)
    by_node: dict[str, tuple[Reply, ...]] = {}
    by_step: dict[str, tuple[Reply, ...]] = {}
    for key, mock in steps.items():
        at = f"{name}: steps.{key}"
        if key in workers:
            by_node[key] = replies_of(mock, at, http=workers[key].type == "HTTP")
        elif key in nodes:
            raise InvalidRequest(f"{at}: node {key} is a {nodes[key].type}: {_instead(nodes[key])}")
        elif key in called or computed:
            by_step[key] = replies_of(mock, at, http=False)
        else:
            hint = did_you_mean(str(key), [*workers, *sorted(called - workers.keys())])
            raise InvalidRequest(f"{at}: {graph.name} has no such node or step; {hint}")
    return by_node, by_step


def workers_of(
    graph: Graph | None, beside: Iterable[Definition[Any, Any]]
) -> dict[str, PlannedNode]:
    """The nodes that are answered for: by id, of other graphs by "graph.id"."""
    plans = {} if graph is None else graph.plan.nodes
    found = {id: node for id, node in plans.items() if node.type in ANSWERED}
    for other in beside:
        if isinstance(other, Graph) and (graph is None or other.name != graph.name):
            nodes = other.plan.nodes.items()
            found.update({f"{other.name}.{id}": n for id, n in nodes if n.type in ANSWERED})
    return found


def _instead(node: Any) -> str:
    if node.type == "WAIT_FOR_SIGNAL":
        return 'send it its signal under "signals"'
    if node.type == "WAIT":
        return "it needs no answer, its time passes by itself"
    return "the engine answers for it"


def _sent(table: Mapping[str, Any], name: str) -> tuple[Sent, ...]:
    signals = table.get("signals") or ()
    if not isinstance(signals, Sequence) or isinstance(signals, str):
        raise InvalidRequest(f'{name}: "signals" must be a list of {{"name": …, "at": "5m"}}')
    sent = []
    for index, signal in enumerate(signals):
        at = f"{name}: signals[{index}]"
        if not isinstance(signal, Mapping) or not isinstance(signal.get("name"), str):
            raise InvalidRequest(f'{at}: write {{"name": "approved", "value": …, "at": "5m"}}')
        _only(signal, SIGNAL_KEYS, at)
        sent.append(Sent(_after(signal.get("at", 0), at), signal["name"], signal.get("value")))
    cancel = table.get("cancel")
    if cancel is not None:
        at = f"{name}: cancel"
        spec = cancel if isinstance(cancel, Mapping) else {"at": cancel}
        _only(spec, CANCEL_KEYS, at)
        sent.append(Sent(_after(spec.get("at", 0), at), None, spec.get("reason", "")))
    return tuple(sorted(sent, key=lambda one: one.at))


def _after(value: Any, at: str) -> int:
    try:
        return microseconds(value, "at")
    except InvalidOptions as error:
        raise InvalidRequest(f"{at}: {error}, counted from the start") from None


def _now(value: Any, name: str) -> int:
    if value is None:
        return BEGIN
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        time = None
    if time is None or time.tzinfo is None:
        raise InvalidRequest(
            f'{name}: now: write a time with its zone, such as "2027-01-15T08:00:00Z", '
            f"not {value!r}"
        )
    return since_epoch(time)


def _only(table: Mapping[str, Any], keys: Sequence[str], at: str) -> None:
    for key in table:
        if key not in keys:
            raise InvalidRequest(f"{at}: unknown key {key!r}; {did_you_mean(str(key), keys)}")
