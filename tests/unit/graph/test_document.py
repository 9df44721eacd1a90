"""Every key of a document, a node and an edge: one wrong thing each, found at its place."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.graph import Graph
from perdure.model.policy import RetryPolicy
from tests.unit.graph.documents import ORDER, changed, problems, without

SECOND = 1_000_000

# pointer changed, new value, pointer of the problem, part of its text
WRONG: list[tuple[str, Any, str, str]] = [
    ("/nodse", [], "/nodse", 'no key "nodse" here; did you mean "nodes"?'),
    ("/x", 1, "/x", 'no key "x" here; use one of: name, version'),
    ("/name", "Order!", "/name", "use 1-64 characters of a-z 0-9 -"),
    ("/name", 3, "/name", "use 1-64 characters"),
    ("/version", 3, "/version", "this is 3, not text"),
    ("/version", "", "/version", "empty"),
    ("/version", "x" * 65, "/version", "too long"),
    ("/version", "a\nb", "/version", "not printable"),
    ("/description", [], "/description", "this is a list, not text"),
    ("/entry", 1, "/entry", "this is 1, not text"),
    ("/entry", "fech", "/entry", 'there is no node "fech"; did you mean "fetch"?'),
    ("/input", "order", "/input", 'this is "order", not a schema'),
    ("/config", {"type": "object"}, "/config", "does not check the config against a schema yet"),
    ("/config", {}, "/config", "does not check the config against a schema yet"),
    ("/max_duration", "soon", "/max_duration", "is not a duration"),
    ("/max_duration", -1, "/max_duration", "negative"),
    ("/max_duration", 0, "/max_duration", "no time at all; leave it out for no end"),
    ("/retention", "0s", "/retention", "leave it out for 30 days"),
    ("/retention", True, "/retention", "not a duration"),
    ("/on_failure", "contine", "/on_failure", 'did you mean "continue"?'),
    ("/on_failure", 1, "/on_failure", "1 is none of continue"),
    ("/on_failure", "stop", "/on_failure", '"stop" is none of continue, drain, cancel'),
    ("/on_failure", [], "/on_failure", "a list is none of"),
    ("/nodes/1", "route", "/nodes/1", 'this is "route", not an object'),
    ("/nodes/1/id", "1st", "/nodes/1/id", '"1st" cannot be a node\'s id'),
    ("/nodes/1/id", 1, "/nodes/1/id", "1 cannot be a node's id"),
    ("/nodes/1/id", "fetch", "/nodes/1/id", 'the id "fetch" is also that of /nodes/0'),
    ("/nodes/1/type", "SWITHC", "/nodes/1/type", 'did you mean "SWITCH"?'),
    ("/nodes/1/type", "switch", "/nodes/1/type", 'did you mean "SWITCH"?'),
    ("/nodes/1/type", None, "/nodes/1", '"type" is missing'),
    ("/nodes/1/type", 7, "/nodes/1/type", "7 is no type of node"),
    ("/nodes/1/type", [], "/nodes/1/type", "a list is no type of node"),
    ("/nodes/1/type", "WAIT_FOR", "/nodes/1/type", 'did you mean "WAIT_FOR_'),
    ("/nodes/1/type", "MAP", "/nodes/1/type", "this version has no MAP nodes yet"),
    ("/nodes/2/lable", 1, "/nodes/2/lable", 'did you mean "label"?'),
    ("/nodes/2/label", "", "/nodes/2/label", "empty"),
    ("/nodes/2/timeout", "1 minute", "/nodes/2/timeout", "is not a duration"),
    ("/nodes/2/queue", "GPU", "/nodes/2/queue", "this version does not have queues yet"),
    ("/nodes/2/retry", 3, "/nodes/2/retry", 'not an object; write {"attempts": 3}'),
    ("/nodes/2/retry", {}, "/nodes/2/retry", '"attempts" is missing'),
    ("/nodes/2/retry", {"attempts": 0}, "/nodes/2/retry", "attempts 0: use a whole number from 1"),
    ("/nodes/2/retry", {"attempts": "3"}, "/nodes/2/retry", "attempts '3'"),
    ("/nodes/2/retry", {"attempts": 2, "jiter": 1}, "/nodes/2/retry/jiter", '"jitter"?'),
    ("/nodes/2/retry", {"attempts": 2, "jitter": 2}, "/nodes/2/retry", "jitter 2: use"),
    ("/nodes/2/retry", {"attempts": 2, "factor": "2"}, "/nodes/2/retry", "factor '2'"),
    ("/nodes/2/retry", {"attempts": 2, "initial": -1}, "/nodes/2/retry/initial", "negative"),
    ("/nodes/2/retry", {"attempts": 2, "initial": "2m"}, "/nodes/2/retry", "below initial"),
    ("/nodes/2/retry", {"attempts": 2, "retry_on": "x"}, "/nodes/2/retry/retry_on", "not a list"),
    ("/nodes/2/retry", {"attempts": 2, "never_on": [""]}, "/nodes/2/retry/never_on/0", "kind"),
    ("/nodes/1/retry", {"attempts": 2}, "/nodes/1/retry", "a SWITCH runs nothing"),
    ("/nodes/1/timeout", 3, "/nodes/1/timeout", "a SWITCH runs nothing"),
    ("/nodes/1/queue", "gpu", "/nodes/1/queue", "a SWITCH runs nothing"),
    ("/edges", {}, "/edges", "this is an object, not a list"),
    ("/edges/0", None, "/edges/0", "this is null, not an object"),
    ("/edges/0/form", "a", "/edges/0/form", 'did you mean "from"?'),
    ("/edges/3/to", None, "/edges/3", '"to" is missing'),
    ("/edges/3/to", 3, "/edges/3/to", "this is 3, not text"),
    ("/edges/3/to", "shp", "/edges/3/to", 'there is no node "shp"; did you mean "ship"?'),
    ("/edges/3/default", "yes", "/edges/3/default", 'this is "yes", not true or false'),
    ("/edges/1/condition", True, "/edges/1/condition", "this is true, not text"),
]


@pytest.mark.rule("D-24")
@pytest.mark.parametrize(("changing", "value", "pointer", "text"), WRONG)
def test_one_wrong_value_is_found_at_its_place(
    changing: str, value: Any, pointer: str, text: str
) -> None:
    found = problems(changed(changing, value))
    assert pointer in [problem.pointer for problem in found]
    assert any(text in str(problem) for problem in found if problem.pointer == pointer)


@pytest.mark.parametrize(
    ("pointer", "text"),
    [
        ("/name", '"name" is missing; write "name": "order"'),
        ("/nodes", "there are no nodes"),
        ("/nodes/1/id", '"id" is missing'),
        ("/nodes/1/type", '"type" is missing'),
        ("/nodes/0/spec", '"spec" is missing: a HTTP needs one'),
        ("/edges/0/from", '"from" is missing'),
    ],
)
def test_what_is_missing_is_named(pointer: str, text: str) -> None:
    assert any(text in str(problem) for problem in problems(without(pointer)))


def test_a_document_without_nodes_is_refused() -> None:
    (problem,) = problems({"name": "empty", "nodes": []})
    assert (problem.pointer, problem.message) == ("/nodes", "there are no nodes")


def test_more_nodes_than_can_be_routed_are_refused() -> None:
    nodes = [{"id": f"n{i}", "type": "FORK"} for i in range(10_001)]
    edges = [{"from": "n0", "to": f"n{i}"} for i in range(1, 10_001)]
    (problem,) = problems({"name": "wide", "nodes": nodes, "edges": edges})
    assert problem.message == "10,001 nodes, at most 10,000"


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/version", "2025-06 β"),
        ("/description", ""),
        ("/description", "several\nlines"),
        ("/entry", "fetch"),
        ("/max_duration", "7d"),
        ("/max_duration", None),
        ("/retention", 3600),
        ("/on_failure", None),
        ("/on_failure", "drain"),
        ("/output", None),
        ("/nodes/2/label", "Review by a person"),
        ("/nodes/2/timeout", 0),
        ("/nodes/2/retry", None),
        ("/nodes/1/spec", {}),
        ("/nodes/1/spec", None),
        ("/nodes/1/label", "Which way?"),
        ("/edges/3/default", False),
        ("/edges/3/condition", None),
    ],
)
def test_what_may_be_said_loads(pointer: str, value: Any) -> None:
    assert problems(changed(pointer, value)) == []


def test_a_single_node_needs_no_edges() -> None:
    graph = Graph.load({"name": "one", "nodes": [{"id": "a", "type": "FORK"}]})
    assert graph.plan.entry == "a"


@pytest.mark.rule("D-35")
@pytest.mark.parametrize(
    ("retry", "policy"),
    [
        ({"attempts": 3}, RetryPolicy(3)),
        ({"attempts": 3, "initial": "5s", "factor": 1}, RetryPolicy(3, 5 * SECOND, 1.0)),
        ({"attempts": 3, "initial": 0}, RetryPolicy(3, initial=0)),
        ({"attempts": 3, "initial": None}, RetryPolicy(3)),
        ({"attempts": 3, "max_delay": None}, RetryPolicy(3, max_delay=0)),
        ({"attempts": 3, "max_delay": 0}, RetryPolicy(3, max_delay=0)),
        ({"attempts": 3, "jitter": 0.5}, RetryPolicy(3, jitter=0.5)),
        ({"attempts": 3, "max_elapsed": "1h"}, RetryPolicy(3, max_elapsed=3600 * SECOND)),
        (
            {"attempts": 3, "retry_on": ["busy"], "never_on": ["gone", "card-declined"]},
            RetryPolicy(3, retry_on=("busy",), never_on=("gone", "card-declined")),
        ),
    ],
)
def test_a_retry_in_a_document_is_the_policy_of_every_door(
    retry: dict[str, Any], policy: RetryPolicy
) -> None:
    assert Graph.load(changed("/nodes/2/retry", retry)).plan.nodes["review"].retry == policy


def test_the_document_used_here_is_good() -> None:
    assert problems(ORDER) == []
