"""Documents that do not load: what nodes do, when they wait, what they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

from tests.docs.messages.case import Case, Section, node, one_finding, whole
from tests.docs.messages.documents import A, B, S, edge, graph


def http(key: str, title: str, severity: str = "error", **spec: Any) -> Case:
    """An HTTP node with this spec."""
    url = {} if "url" in spec else {"url": "https://shop.test/orders"}
    fetch = {"id": "fetch", "type": "HTTP", "spec": {**url, **spec}}
    return node(f"http.{key}", title, fetch, severity)


def wait(key: str, title: str, spec: Any, kind: str = "WAIT") -> Case:
    return node(f"wait.{key}", title, {"id": "w", "type": kind, "spec": spec}, max_duration="30d")


def reads(key: str, title: str, value: Any, **top: Any) -> Case:
    """The TASK b, after the TASK a, reads the value."""
    reader = {**B, "spec": {"step": "work", "input": value}}
    return whole(f"template.{key}", title, graph([A, reader], [edge("a", "b")], **top))


REQUESTS = Section(
    "Documents that do not load: HTTP",
    "",
    [
        http("no-url", "no address", url=None),
        http("not-whole", "an address without its host", url="/orders"),
        http("scheme", "another scheme", url="ftp://{{input.host}}/x"),
        http("space", "a space in an address", url="https://shop.test/my orders"),
        http("credentials", "a password in an address", url="https://ann:secret@shop.test"),
        http("method", "a method that does not exist", method="FETCH"),
        http("method-case", "a method in small letters", method="post"),
        http("header-name", "a header whose name is none", headers={"X Y": "1"}),
        http("header-framing", "a header that the client writes itself", headers={"Host": "a"}),
        http("header-twice", "a header that is there twice", headers={"X-A": "1", "x-a": "2"}),
        http("header-value", "a header that is no text", headers={"X-A": ["1"]}),
        http("header-line", "a header with a line break", headers={"X-A": "1\n2"}),
        http("query", "a parameter that is an object", query={"page": {"n": 1}}),
        http("two-bodies", "two bodies", method="POST", json={}, body="x"),
        http("body", "a body that is no text", method="POST", body={"a": 1}),
        http("expect", "a status that does not exist", expect="20x"),
        http("expect-nothing", "no status at all", expect=[]),
        http("max-size", "a size that is none", max_size="1MB"),
        http("redirects", "redirects", redirects=True),
        http("timeout", "a timeout that is no duration", timeout="soon"),
        http("key", "a key that another client has", data={"a": 1}),
    ],
)

WAITS = Section(
    "Documents that do not load: waits",
    "What is a template is judged when a run reaches the node, with the same words.",
    [
        wait("nothing", "a WAIT without a time", {}),
        wait("key", "a misspelt key beside a right one", {"duration": "1h", "untill": "x"}),
        wait("duration", "a duration that is none", {"duration": "tomorrow"}),
        wait("negative", "a negative number of seconds", {"duration_seconds": -5}),
        wait("both", "two durations", {"duration": "1h", "duration_seconds": 60}),
        wait("until", "a time without its zone", {"until": "2030-01-31T12:00:00"}),
        wait("no-such-day", "a day that does not exist", {"until": "2030-02-31T12:00:00Z"}),
        wait("no-signal", "no signal", {"timeout": "1h"}, "WAIT_FOR_SIGNAL"),
        wait("signal-name", "a signal that is a number", {"signal": 5}, "WAIT_FOR_SIGNAL"),
        wait("timeout", "a timeout that is none", {"signal": "go", "timeout": "soon"},
             "WAIT_FOR_SIGNAL"),
        wait("on-timeout", "a timeout that leads nowhere known",
             {"signal": "go", "timeout": "1d", "on_timeout": "skip"}, "WAIT_FOR_SIGNAL"),
        wait("on-no-timeout", "what to do after a timeout that is not there",
             {"signal": "go", "on_timeout": "continue"}, "WAIT_FOR_SIGNAL"),
        wait("event-key", "a key of the newer spelling in the older one",
             {"event": "go", "timeout": "1h"}, "WAIT_FOR_EVENT"),
    ],
)  # fmt: skip


def condition(key: str, title: str, text: str) -> Case:
    other = edge("s", "b", default=True)
    drawn = graph([S, A, B], [edge("s", "a", condition=text), other])
    return whole(f"condition.{key}", title, drawn)


TEMPLATES = Section(
    "Documents that do not load: templates and conditions",
    "The column is that within the text of the template, or that of the file when there is one.",
    [
        reads("open", "a template that is not closed", "{{input.x"),
        reads("syntax", "an expression that ends too early", "{{input.x + }}"),
        reads("python", "a word of Python", "{{input.x and input.y}}"),
        reads("filter", "a filter of another template language", "{{input.name | upper}}"),
        reads("assignment", "one equals sign", "{{input.x = 1}}"),
        reads("quote", "a text that is not closed", "{{input.x + 'a}}"),
        reads("function", "a function that does not exist", "{{len(input.items)}}"),
        reads("arguments", "arguments that a function does not take", "{{size()}}"),
        reads("pattern", "a pattern that cannot be used", "{{input.x.matches('(')}}"),
        reads("big-integer", "an integer beyond 64 bits", "{{99999999999999999999}}"),
        reads("constant", "an expression that reads nothing and cannot be", "{{1 / 0}}"),
        reads("root", "a name that is nothing", "{{inptu.x}}"),
        reads("word", "a value as Python writes it", "{{input.x == None}}"),
        reads("unknown-node", "a node that is not there", "{{tasks.aa.output}}"),
        reads("itself", "a node that reads itself", "{{tasks.b.output}}"),
        whole("template.later-node", "a node that comes later",
              graph([{**A, "spec": {"step": "work", "input": "{{tasks.b.output}}"}}, B],
                    [edge("a", "b")])),
        whole("template.hyphen", "an id with a hyphen after a dot",
              graph([{**A, "id": "send-mail"},
                     {**B, "spec": {"step": "work", "input": "{{tasks.send-mail.output}}"}}],
                    [edge("send-mail", "b")])),
        reads("task-field", "a misspelt field of a task", "{{tasks.a.outptu}}"),
        reads("task-value", "a value read past .output", "{{tasks.a.total}}"),
        reads("system-field", "a field that system does not have", "{{system.run}}"),
        whole("template.http-field", "a field of an answer read past .body",
              graph([{"id": "fetch", "type": "HTTP", "spec": {"url": "https://shop.test"}},
                     {**B, "spec": {"step": "work", "input": "{{tasks.fetch.output.total}}"}}],
                    [edge("fetch", "b")])),
        reads("secret-mixed", "a secret read with something else", "{{secrets.key + input.x}}"),
        whole("template.secret-output", "a secret in the output",
              graph([A], [], output="{{secrets.key}}")),
        whole("template.secret-wait", "a secret in a wait",
              graph([{"id": "w", "type": "WAIT", "spec": {"duration": "{{secrets.x}}"}}], [])),
        condition("no-template", "a condition without a template", "input.total > 100"),
        condition("text-around", "a condition with text around it", "{{input.total}} > 100"),
        condition("secret", "a condition that reads a secret", "{{secrets.key == 'x'}}"),
        reads("closed-input", "a field that no input can have", "{{input.totl}}",
              input={"type": "object", "properties": {"total": {}},
                     "required": ["total"], "additionalProperties": False}),
    ],
)  # fmt: skip


def schema(key: str, title: str, value: Any) -> Case:
    return whole(f"schema.{key}", title, graph([A], [], input=value))


def without_checker(_: Path) -> str:
    with mock.patch("perdure.graph.inputs.check.find_spec", return_value=None):
        return one_finding(graph([A], [], input={"type": "object"}), "error")


SCHEMAS = Section(
    "Documents that do not load: the schema of the input",
    "",
    [
        Case("schema.no-extra", "the checker of schemas is not installed", "", without_checker),
        schema("not-a-schema", "a text", "object"),
        schema("type", "a type that does not exist", {"type": "map"}),
        schema("keyword", "a misspelt keyword", {"type": "object", "requird": ["a"]}),
        schema("required", "a field that is required and not let in",
               {"properties": {"a": {}}, "required": ["b"], "additionalProperties": False}),
        schema("format", "a format that is not checked", {"type": "string", "format": "phone"}),
        schema("reference", "a schema that is elsewhere", {"$ref": "https://shop.test/schema"}),
    ],
)  # fmt: skip
SECTIONS = [REQUESTS, WAITS, TEMPLATES, SCHEMAS]
