"""What the spec of each type of node may hold, one wrong thing at a time."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.graph import Graph
from tests.unit.graph.documents import changed, problems

HTTP: list[tuple[dict[str, Any], str, str]] = [
    ({"methd": "GET"}, "/methd", 'did you mean "method"?'),
    ({"method": "GTE"}, "/method", 'did you mean "GET"?'),
    ({"method": "get"}, "/method", '"get" is none of GET, HEAD'),
    ({"method": 1}, "/method", "1 is none of GET"),
    ({"url": None}, "", '"url" is missing'),
    ({"url": 7}, "/url", "this is 7, not text"),
    ({"url": "shop.test/x"}, "/url", 'not a whole URL; start with "https://" and a host'),
    ({"url": "https://"}, "/url", "not a whole URL"),
    ({"url": "https:///x"}, "/url", "not a whole URL"),
    ({"url": "ftp://shop.test"}, "/url", "not a whole URL"),
    ({"url": "ftp://{{input.host}}"}, "/url", "not http or https"),
    ({"url": "https://shop.test/a b"}, "/url", "a space or a control character"),
    ({"url": "https://shop.test/\n{{input.x}}"}, "/url", "a space or a control character"),
    ({"headers": []}, "/headers", "a list, not an object"),
    ({"headers": {"a b": "x"}}, "/headers/a b", "cannot be a header's name"),
    ({"headers": {"a/b": "x"}}, "/headers/a~1b", "cannot be a header's name"),
    ({"headers": {"Host": "x"}}, "/headers/Host", "the client's own"),
    ({"headers": {"Accept": "x", "accept": "y"}}, "/headers/accept", "there twice"),
    ({"headers": {"a": True}}, "/headers/a", "this is true, not text"),
    ({"headers": {"a": None}}, "/headers/a", "this is null, not text"),
    ({"headers": {"a": "x\r\nHost: y"}}, "/headers/a", "a line break"),
    ({"headers": {"a": "{{input.x}}\r\nHost: y"}}, "/headers/a", "a line break"),
    ({"query": "a=b"}, "/query", 'this is "a=b", not an object'),
    ({"query": {"a": {}}}, "/query/a", "this holds an object"),
    ({"query": {"a": [1, None]}}, "/query/a", "this holds null"),
    ({"body": {"a": 1}}, "/body", 'not text; for a JSON body use "json"'),
    ({"body": "x", "json": None}, "/body", "one body"),
    ({"timeout": "soon"}, "/timeout", "is not a duration"),
    ({"timeout": -1}, "/timeout", "negative"),
    ({"expect": 99}, "/expect", "99 is not an HTTP status"),
    ({"expect": 200.0}, "/expect", "200.0 is not an HTTP status"),
    ({"expect": True}, "/expect", "true is not an HTTP status"),
    ({"expect": "2x"}, "/expect", '"2x" is not an HTTP status'),
    ({"expect": "6xx"}, "/expect", '"6xx" is not'),
    ({"expect": [200, {}]}, "/expect", "an object is not"),
    ({"expect": []}, "/expect", "no status is ever expected"),
    ({"max_size": 0}, "/max_size", "0 is no size"),
    ({"max_size": True}, "/max_size", "true is no size"),
    ({"max_size": "1MB"}, "/max_size", '"1MB" is no size'),
    ({"redirects": 3}, "/redirects", "redirects are not followed"),
    ({"redirects": True}, "/redirects", 'say "expect": "3xx"'),
]


@pytest.mark.rule("D-24")
@pytest.mark.parametrize(("changes", "below", "text"), HTTP)
def test_a_wrong_request_is_found_before_it_is_sent(
    changes: dict[str, Any], below: str, text: str
) -> None:
    spec = {"url": "https://shop.test/", **changes}
    (problem,) = problems(changed("/nodes/0/spec", spec, LONE))
    assert (problem.pointer, problem.node) == (f"/nodes/0/spec{below}", "call")
    assert text in str(problem)


LONE: dict[str, Any] = {
    "name": "lone",
    "nodes": [{"id": "call", "type": "HTTP", "spec": {"url": "https://shop.test/"}}],
}


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "DELETE"},
        {"method": "{{input.method}}"},
        {"method": None},
        {"url": "http://localhost:8080"},
        {"url": "https://[::1]/x?y=1#z"},
        {"url": "{{input.url}}"},
        {"url": "{{input.base}}/orders/{{input.id}}"},
        {"url": "htt{{input.rest}}"},
        {"headers": {"X-A": "b", "X-N": 1, "X-F": 1.5, "X-T": "a\tb", "X-S": "{{secrets.key}}"}},
        {"query": {"a": "x", "b": 1, "c": [True, 1.5, "y"], "d": "{{input.d}}"}},
        {"query": "{{input.query}}"},
        {"json": None},
        {"json": {"a": ["{{input.a}}"]}},
        {"body": ""},
        {"body": "{{input.text}}"},
        {"timeout": "5s"},
        {"timeout": 0},
        {"timeout": "{{input.seconds}}"},
        {"expect": 404},
        {"expect": "2xx"},
        {"expect": [200, "3xx", "{{input.status}}"]},
        {"expect": "{{input.status}}"},
        {"max_size": 1},
        {"max_size": "{{input.limit}}"},
        {"redirects": False},
        {"redirects": 0},
    ],
)
def test_a_request_may_say_this(changes: dict[str, Any]) -> None:
    spec = {"url": "https://shop.test/", **changes}
    assert problems(changed("/nodes/0/spec", spec, LONE)) == []


@pytest.mark.rule("D-24")
@pytest.mark.parametrize(
    ("spec", "below", "text"),
    [
        ({"setp": "x"}, "/setp", 'did you mean "step"?'),
        ({}, "", '"step" is missing; write "step": "ship-order"'),
        ({"step": "Ship"}, "/step", "step 'Ship' is not valid: use 1-64 characters"),
        ({"step": ["x"]}, "/step", "this is a list, not text"),
        ({"step": "x", "args": {}}, "/args", 'did you mean "input"'),
        (None, None, 'a TASK needs one; write "spec": {"step": "ship-order"'),
        ([], "", "this is a list, not an object"),
        ("work", "", 'this is "work", not an object'),
    ],
)
def test_a_wrong_call_of_a_step_is_found(spec: Any, below: str | None, text: str) -> None:
    found = problems({"name": "lone", "nodes": [{"id": "a", "type": "TASK", "spec": spec}]})
    at = "/nodes/0" if below is None else f"/nodes/0/spec{below}"
    assert at in [problem.pointer for problem in found]
    assert text in "\n".join(map(str, found))


@pytest.mark.parametrize(
    ("spec", "step"),
    [
        ({"step": "ship-order"}, "ship-order"),
        ({"step": "work", "input": None}, "work"),
        ({"step": "work", "input": [1]}, "work"),
        ({"step": "work", "input": "{{input}}"}, "work"),
        ({"step": "{{input.step}}"}, None),
    ],
)
def test_a_task_names_its_step_or_works_it_out(spec: Any, step: str | None) -> None:
    graph = Graph.load({"name": "lone", "nodes": [{"id": "a", "type": "TASK", "spec": spec}]})
    assert graph.plan.nodes["a"].step == step


@pytest.mark.rule("G-67")
@pytest.mark.parametrize("kind", ["HTTP", "TASK"])
def test_a_whole_spec_may_be_a_template(kind: str) -> None:
    node = {"id": "a", "type": kind, "spec": "{{input.spec}}"}
    planned = Graph.load({"name": "lone", "nodes": [node]}).plan.nodes["a"]
    assert (planned.step, planned.timeout) == (None, None)
    assert planned.spec.render({"input": {"spec": {"step": "work"}}}) == {"step": "work"}


@pytest.mark.parametrize("kind", ["SWITCH", "FORK", "JOIN"])
@pytest.mark.parametrize("spec", [{"joinOn": []}, [], "x", 1])
def test_a_control_node_has_no_spec(kind: str, spec: Any) -> None:
    (problem,) = problems({"name": "lone", "nodes": [{"id": "a", "type": kind, "spec": spec}]})
    assert str(problem) == f"/nodes/0/spec (node a): a {kind} has no spec; take it out"


@pytest.mark.rule("D-30")
@pytest.mark.parametrize(
    ("own", "spec", "timeout"),
    [
        (None, None, None),
        (None, "5s", 5_000_000),
        ("1m", "5s", 60_000_000),
        (0, None, 0),
        (None, "{{input.seconds}}", None),
    ],
)
def test_the_time_of_a_request_is_that_of_its_attempt(own: Any, spec: Any, timeout: Any) -> None:
    node = {"id": "a", "type": "HTTP", "timeout": own}
    node["spec"] = {"url": "https://shop.test/", "timeout": spec}
    graph = Graph.load({"name": "lone", "nodes": [node]})
    assert graph.plan.nodes["a"].timeout == timeout
