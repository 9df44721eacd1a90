"""Documents that do not load: shape, names, nodes, edges."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

from perdure.graph import Graph
from perdure.graph.read import MAX_BYTES
from tests.docs.messages.case import Case, Say, Section, node, one_finding, raised, text, whole

A: dict[str, Any] = {"id": "a", "type": "TASK", "spec": {"step": "work"}}
B: dict[str, Any] = {**A, "id": "b"}
S: dict[str, Any] = {"id": "s", "type": "SWITCH"}
IF = "{{input.x}}"


def graph(nodes: list[Any], edges: list[Any], **top: Any) -> dict[str, Any]:
    return {"name": "order", "nodes": nodes, "edges": edges, **top}


def edge(source: str, target: str, **rest: Any) -> dict[str, Any]:
    return {"from": source, "to": target, **rest}


def lone(key: str, title: str, **changes: Any) -> Any:
    """The TASK `a` with other members; None takes one away."""
    changed = {k: v for k, v in {**A, **changes}.items() if v is not ...}
    return node(f"node.{key}", title, changed)


READING = Section(
    "Documents that cannot be read",
    "The text is no JSON or no YAML, or holds what readers of these disagree on.",
    [
        text("read.empty", "the file is empty", ""),
        text("read.not-json", "the text is not JSON", '{"name": "order" "nodes": []}'),
        text("read.file-name", "the name of a file, where its text belongs", "order.json"),
        text("read.not-utf8", "the file is not UTF-8", b'{"name": "caf\xe9"}'),
        text("read.not-an-object", "the document is a list", "[]"),
        text("read.key-twice", "a key is there twice",
             '{"name": "a", "name": "b", "nodes": [{"id": "a", "type": "FORK"}]}'),
    ],
)  # fmt: skip

NODES_OF_ONE = "nodes:\n  - {id: a, type: TASK, spec: {step: work}}\n"


def yaml(key: str, title: str, source: str) -> Case:
    """A text that YAML reads otherwise than people do, or not at all."""
    return text(f"yaml.{key}", title, source, "yaml")


def without(module: str) -> Say:
    """What a document in YAML says where the module is not installed."""

    def say(_: Path) -> str:
        hidden = {name: None for name in sys.modules if name.split(".")[0] == module}
        with mock.patch.dict(sys.modules, {**hidden, module: None}):
            return one_finding("name: order\n" + NODES_OF_ONE, "error", format="yaml")

    return say


YAML = Section(
    "Documents in YAML",
    "",
    [
        Case("yaml.no-extra", "the reader of YAML is not installed", "", without("yaml")),
        yaml("empty", "the file is empty", "# nothing yet\n"),
        yaml("template", "a template without quotes",
             "name: order\n" + NODES_OF_ONE + "output: {{tasks.a.output}}\n"),
        yaml("template-inside", "a template without quotes, within a list",
             "name: order\n" + NODES_OF_ONE + "output: [{{tasks.a.output}}, 1]\n"),
        yaml("tab", "a tab", "name: order\nnodes:\n\t- {id: a}\n"),
        yaml("open", "a bracket that is not closed", "name: order\nnodes: [\n"),
        yaml("indent", "a line that belongs nowhere", "name: order\n  version: 1\n"),
        yaml("key", "a key that is a number", "name: order\n" + NODES_OF_ONE + "output: {1: a}\n"),
        yaml("merge", "a merge key", "name: order\n" + NODES_OF_ONE + "output: {<<: {a: 1}}\n"),
        yaml("octal", "a number with a zero first",
             "name: order\n" + NODES_OF_ONE + "output: 0755\n"),
        yaml("tag", "a tag", "name: order\n" + NODES_OF_ONE + "output: !env HOME\n"),
        yaml("key-tag", "a tag at a key",
             "name: order\n" + NODES_OF_ONE + "output: {!!str a: 1}\n"),
        yaml("line-break", "a character that some readers take for a line break",
             "name: order\n" + NODES_OF_ONE + 'output: "a\u2028b"\n'),
        yaml("control", "a control character", "name: order\x07\n" + NODES_OF_ONE),
    ],
)  # fmt: skip


def nested(levels: int) -> str:
    return '{"name": ' + "[" * levels + "]" * levels + "}"


def loading(key: str, title: str, shown: str, source: Any) -> Case:
    return raised(f"limit.{key}", title, shown, lambda _: Graph.load(source), lang="text")


LIMITS = Section(
    "Documents that are too much",
    "",
    [
        loading("characters", "more than 4 MiB of text", "", " " * (MAX_BYTES + 1)),
        loading("bytes", "more than 4 MiB as it is kept", "",
                graph([A], [], description="x" * MAX_BYTES)),
        loading("depth", "a hundred lists within one another", "", nested(100)),
        loading("depth-of-text", "a hundred thousand of them", "", nested(100_000)),
        loading("values", "more than a million values", "", graph([A], [], output=[1] * 1_000_001)),
        loading("nodes", "more than 10,000 nodes", "",
                graph([{**A, "id": f"n{i}"} for i in range(10_001)], [])),
        whole("document.config", "a schema of the config", graph([A], [], config={})),
        whole("document.infinite", "a number without an end",
              graph([A], [], max_duration=float("inf"))),
    ],
)  # fmt: skip

SHAPE = Section(
    "Documents that do not load: the document itself",
    "`Graph.load`, `perdure lint`, `perdure run` and `perdure publish` all say the same of a "
    "document. Every problem is told at once, each with line and column when there is a text.",
    [
        whole("document.no-name", "no name", {"nodes": [A]}),
        whole("document.bad-name", "a name outside the rules", {"name": "Order", "nodes": [A]}),
        whole("document.name-not-text", "a name that is no text", {"name": 7, "nodes": [A]}),
        whole("document.no-nodes", "no nodes", {"name": "order"}),
        whole("document.empty-nodes", "an empty list of nodes", {"name": "order", "nodes": []}),
        whole("document.nodes-not-a-list", "nodes by name", {"name": "order", "nodes": {}}),
        whole("document.unknown-key", "a key that is not known", graph([A], [], retension="1d")),
        whole("document.key-of-another-system", "a key that another system has",
              graph([A], [], timeout="1d")),
        whole("document.version", "a version that is no text", graph([A], [], version=3)),
        whole("document.version-long", "a version that is too long",
              graph([A], [], version="1" * 65)),
        whole("document.duration", "a duration without a unit",
              graph([A], [], max_duration="5 minutes")),
        whole("document.negative", "a negative duration", graph([A], [], max_duration=-1)),
        whole("document.zero", "a run of no time at all", graph([A], [], max_duration=0)),
        whole("document.not-a-duration", "true is no duration", graph([A], [], retention=True)),
        whole("document.on-failure", "an unknown way to fail", graph([A], [], on_failure="stop")),
        whole("document.integer", "a number beyond 64 bits", graph([A], [], output=2**63)),
    ],
)  # fmt: skip

NODES = Section(
    "Documents that do not load: nodes",
    "",
    [
        whole("node.not-an-object", "a node that is only a name", graph(["a"], [])),
        lone("no-id", "no id", id=...),
        lone("bad-id", "an id that templates could not name", id="first step"),
        whole("node.same-id", "two nodes of one id", graph([A, A], [])),
        lone("no-type", "no type", type=...),
        lone("unknown-type", "a type that does not exist", type="TSAK"),
        lone("later-type", "a type that this version does not have", type="MAP"),
        lone("type-not-text", "a type that is no text", type=["TASK"]),
        lone("no-spec", "a TASK without a spec", spec=...),
        lone("spec-not-an-object", "a spec that is a text", spec="work"),
        lone("unknown-key", "a misspelt key", retrys=3),
        lone("needs", "an order said as another system says it", needs=["b"]),
        lone("condition", "a condition on a node", **{"if": IF}),
        lone("queue", "a queue", queue="mail"),
        lone("label", "a label that is too long", label="x" * 300),
        lone("no-step", "a TASK that names no step", spec={"input": {}}),
        lone("step-key", "a misspelt key of a spec", spec={"step": "work", "inptu": {}}),
        lone("step-name", "a step's name as Python has it", spec={"step": "ship_order"}),
        node("node.control-spec", "a spec where nothing is done",
             {"id": "f", "type": "FORK", "spec": {"x": 1}}),
        node("node.control-retry", "a retry where nothing runs", {**S, "retry": {"attempts": 2}}),
        node("node.wait-timeout", "a timeout of a wait, in the wrong place",
             {"id": "w", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "go"}, "timeout": 5},
             max_duration="1d"),
    ],
)  # fmt: skip


def retry(key: str, title: str, value: Any) -> Any:
    return lone(f"retry-{key}", title, retry=value)


RETRIES = Section(
    "Documents that do not load: retries",
    "",
    [
        retry("number", "a number where an object belongs", 3),
        retry("no-attempts", "no attempts", {"initial": 1}),
        retry("attempts", "no attempt at all", {"attempts": 0}),
        retry("key", "a misspelt key", {"attempts": 3, "intial": 1}),
        retry("other-key", "a key that another system has", {"attempts": 3, "backoff": 2}),
        retry("jitter", "a jitter beyond 1", {"attempts": 3, "jitter": 20}),
        retry("factor", "a factor that is no number", {"attempts": 3, "factor": "2"}),
        retry("max-delay", "a cap below the first delay",
              {"attempts": 3, "initial": "1m", "max_delay": 5}),
        retry("kind", "a kind that is no text", {"attempts": 3, "retry_on": [404]}),
    ],
)  # fmt: skip

EDGES = Section(
    "Documents that do not load: edges and order",
    "",
    [
        whole("edge.not-an-object", "an edge that is a text", graph([A], ["a -> b"])),
        whole("edge.no-end", "an edge that leads nowhere", graph([A], [{"from": "a"}])),
        whole("edge.unknown-key", "a key that another system has",
              graph([A, B], [{"from": "a", "to": "b", "else": True}])),
        whole("edge.unknown-node", "a node that is not there",
              graph([A, B], [edge("a", "b"), edge("a", "bb")])),
        whole("edge.twice", "two edges between the same nodes",
              graph([A, B], [edge("a", "b"), edge("a", "b")])),
        whole("edge.circle", "nodes in a circle",
              graph([A, B], [edge("a", "b"), edge("b", "a")])),
        whole("edge.condition", "a condition on an edge that leaves no SWITCH",
              graph([A, B], [edge("a", "b", condition=IF)])),
        whole("edge.default-text", "a default that is a text",
              graph([A, B], [edge("a", "b", default="yes")])),
        whole("edge.two-defaults", "two defaults of a SWITCH",
              graph([S, A, B, {**A, "id": "c"}], [
                  edge("s", "c", condition=IF), edge("s", "a", default=True),
                  edge("s", "b", default=True)])),
        whole("edge.default-condition", "a default with a condition",
              graph([S, A, B], [
                  edge("s", "a", condition="{{input.y}}"),
                  edge("s", "b", default=True, condition=IF)])),
        whole("edge.many-starts", "several nodes to start with", graph([A, B], [])),
        whole("edge.entry-blocks", "an entry from which a join is never reached whole",
              graph([A, B, {**A, "id": "c"}], [edge("a", "c"), edge("b", "c")], entry="b")),
        whole("edge.unknown-entry", "an entry that is not there",
              graph([A, B], [edge("a", "b")], entry="aa")),
    ],
)  # fmt: skip
SECTIONS = [READING, YAML, LIMITS, SHAPE, NODES, RETRIES, EDGES]
