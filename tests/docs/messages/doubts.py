"""Documents that load and may surprise: what lint warns of; and calls that cannot work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure.flow.step import step
from tests.docs.messages.case import Case, Section, compact, node, one_finding, whole
from tests.docs.messages.documents import IF, A, B, S, edge, graph
from tests.docs.messages.specs import http

C: dict[str, Any] = {**A, "id": "c"}
F: dict[str, Any] = {"id": "f", "type": "FORK"}
FETCH: dict[str, Any] = {"id": "h", "type": "HTTP", "spec": {"url": "https://shop.test"}}


@step
async def greet(name: str, times: int = 1) -> None: ...


@step
async def work() -> None: ...


def doubt(key: str, title: str, nodes: list[Any], edges: list[Any], **top: Any) -> Case:
    return whole(f"doubt.{key}", title, graph(nodes, edges, **top), "warning")


def choice(key: str, title: str, text: str, before: Any = None) -> Case:
    """A SWITCH with a default asks this, after the node `before`."""
    nodes = [*([before] if before else []), S, A, B]
    edges = [*([edge(before["id"], "s")] if before else []), edge("s", "a", condition=text)]
    return doubt(key, title, nodes, [*edges, edge("s", "b", default=True)])


def lone(key: str, title: str, **changes: Any) -> Case:
    return node(f"doubt.{key}", title, {**A, **changes}, "warning")


def wait(key: str, title: str, kind: str, spec: Any, **top: Any) -> Case:
    return node(f"doubt.{key}", title, {"id": "w", "type": kind, "spec": spec}, "warning", **top)


def reads(key: str, title: str, value: Any, **top: Any) -> Case:
    reader = {**B, "spec": {"step": "work", "input": value}}
    return doubt(key, title, [A, reader], [edge("a", "b")], **top)


ASKS = [edge("s", "a", condition=IF), edge("s", "b", default=True)]

FLOW = Section(
    "Warnings: order and choice",
    "`perdure lint` warns of these; they load, and may surprise. `--strict` makes errors of them.",
    [
        doubt("no-default", "a SWITCH that may choose nothing", [S, A], ASKS[:1]),
        doubt("no-condition", "a SWITCH that does not choose", [S, A], [edge("s", "a")]),
        doubt("no-edge", "a SWITCH that leads nowhere", [A, S], [edge("a", "s")]),
        doubt("default-beside", "a default beside an edge that is always taken",
              [S, A, B, C], [*ASKS, edge("s", "c")]),
        doubt("same-condition", "two edges with one condition", [S, A, B, C],
              [ASKS[0], edge("s", "c", condition=IF), ASKS[1]]),
        doubt("join-of-one", "a JOIN of one branch", [A, {"id": "j", "type": "JOIN"}],
              [edge("a", "j")]),
        doubt("join-of-none", "a JOIN of nothing", [{"id": "j", "type": "JOIN"}, A],
              [edge("j", "a")]),
        doubt("fork-to-one", "a FORK into one branch", [F, A], [edge("f", "a")]),
        doubt("fork-to-none", "a FORK into nothing", [A, F], [edge("a", "f")]),
        doubt("not-reached", "a node that the entry does not reach", [A, B], [edge("a", "b")],
              entry="b"),
        doubt("shared-signal", "two nodes that wait for one signal",
              [F, {"id": "w", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "go"}},
               {"id": "v", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "go"}}],
              [edge("f", "w"), edge("f", "v")], max_duration="1d"),
        choice("always", "a condition that is always true", "{{1 < 2}}"),
        choice("number", "a condition that is a number", "{{size(input.items)}}"),
        choice("text", "a condition that is a text", "{{string(input.ok)}}"),
        choice("list", "a condition that is a list", "{{[input.ok]}}"),
        choice("object", "a condition that is the output of a request", "{{tasks.h.output}}",
               FETCH),
    ],
)  # fmt: skip

TIMES = Section(
    "Warnings: times",
    "",
    [
        wait("for-ever", "a signal that may never come", "WAIT_FOR_SIGNAL", {"signal": "go"}),
        wait("no-time", "a WAIT of no time", "WAIT", {"duration": 0}),
        wait("fixed-time", "a WAIT for one moment of all runs", "WAIT",
             {"until": "2030-01-31T12:00:00Z"}),
        wait("until-and-duration", "a WAIT with two ends", "WAIT",
             {"until": "2030-01-31T12:00:00Z", "duration": "1h"}),
        wait("beyond-run", "a wait longer than the run", "WAIT_FOR_SIGNAL",
             {"signal": "go", "timeout": "2d"}, max_duration="1d"),
        node("doubt.attempt-beyond-run", "an attempt longer than the run", {**A, "timeout": "2h"},
             "warning", max_duration="1h"),
        node("doubt.two-timeouts", "two timeouts of a request",
             {**FETCH, "spec": {"url": "https://shop.test", "timeout": 5}, "timeout": 9},
             "warning"),
        lone("single-attempt", "delays where nothing is repeated",
             retry={"attempts": 1, "initial": "5s"}),
        lone("retry-and-never", "a kind that is repeated, and never repeated",
             retry={"attempts": 3, "retry_on": ["busy"], "never_on": ["busy"]}),
        lone("shrinking", "delays that would shrink", retry={"attempts": 3, "factor": 0.5}),
        lone("few-attempts", "attempts that never begin",
             retry={"attempts": 9, "initial": "10s", "max_elapsed": "30s"}),
        lone("long-attempt", "one attempt that takes the time of all", timeout="5m",
             retry={"attempts": 3, "max_elapsed": "1m"}),
        node("doubt.long-delays", "delays longer than the run",
             {**A, "retry": {"attempts": 9, "initial": "10m", "max_delay": "1h"}}, "warning",
             max_duration="1h"),
    ],
)  # fmt: skip

READS = Section(
    "Warnings: templates and requests",
    "",
    [
        doubt("skipped", "the output of a branch that may be skipped",
              [S, A, B, {**C, "spec": {"step": "work", "input": "{{tasks.a.output}}"}}],
              [*ASKS, edge("a", "c"), edge("b", "c")]),
        reads("computed", "a task that only a run can tell", "{{tasks[input.which].output}}"),
        reads("computed-secret", "a secret that only a run can tell", "{{secrets['a' + 'b']}}"),
        reads("status", "a status that no task has", "{{tasks.a.status == 'success'}}"),
        reads("failed-status", "a status that is never seen", "{{tasks.a.status == 'failed'}}"),
        reads("dollar", "a template as another system writes it", "${{ input.x }}"),
        reads("plain", "a text that was meant as a template", "input.total"),
        reads("key", "a template in the name of a field", {"{{input.key}}": 1}),
        reads("optional-input", "a field that an input may lack", "{{input.note}}",
              input={"type": "object", "properties": {"note": {}}}),
        reads("input-name", "a field that is not in the schema of the input", "{{input.totl}}",
              input={"type": "object", "properties": {"total": {}}}),
        http("get-body", "a body without a method", "warning", json={"id": 1}),
        http("json-text", "JSON written as a text", "warning", method="POST", json='{"id": 1}'),
        http("plain-secret", "a secret sent in the clear", "warning", url="http://shop.test",
             headers={"X-Key": "{{secrets.key}}"}),
        http("literal-secret", "a credential in the document", "warning",
             headers={"Authorization": "Bearer 123"}),
    ],
)  # fmt: skip


def call(key: str, title: str, spec: Any) -> Case:
    document = graph([{**A, "spec": spec}], [])

    def say(_: Path) -> str:
        return one_finding(document, "error", steps={"greet": greet})

    return Case(f"call.{key}", title, compact(document["nodes"][0]), say)


CALLS = Section(
    "Calls of steps that cannot work",
    "`perdure lint --app steps.py` tells these; an engine that has the steps refuses every new run "
    "of such a graph. Here the step is `async def greet(name: str, times: int = 1)`.",
    [
        call("no-step", "a step that is not there", {"step": "gret"}),
        call("name", "a misspelt parameter", {"step": "greet", "input": {"nmae": "{{input.x}}"}}),
        call("missing", "a parameter that gets nothing", {"step": "greet", "input": {"times": 2}}),
        call("unknown", "a parameter too many", {"step": "greet", "input": {"name": "a", "x": 1}}),
        call("value", "a value of another kind", {"step": "greet", "input": {"name": 5}}),
        call("by-position", "a list of arguments", {"step": "greet", "input": ["ann", 2]}),
    ],
)
SECTIONS = [FLOW, TIMES, READS, CALLS]
