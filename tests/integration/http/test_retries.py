"""HTTP nodes in an engine: what a server says about asking again, within the node's own limits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from perdure import Client, Engine, RunFailed
from perdure.graph.definition import Graph
from tests.integration.http.servers import serving

pytestmark = pytest.mark.rule("D-16")

SECOND = 1_000_000
DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
LATER = "Wed, 21 Oct 2015 08:28:00 GMT"


def calling(base: str, retry: Mapping[str, Any] | None) -> Graph:
    node = {"id": "call", "type": "HTTP", "spec": {"url": base}, "retry": retry}
    return Graph.load({"name": "calling", "nodes": [node]})


async def tried(
    answers: list[web.Response], retry: Mapping[str, Any] | None
) -> tuple[Any, list[Mapping[str, Any]], int]:
    """The outcome of a run against a server that answers so (the last one over and over), its
    RetryTask records, and how many requests there were."""
    asked = 0

    async def answer(_: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        one = answers[min(asked, len(answers)) - 1]
        return web.Response(status=one.status, headers=dict(one.headers))

    async with serving(answer) as base, Engine("memory:", [calling(base, retry)]) as engine:
        run = await engine.start("calling", id="1")
        outcome: Any
        try:
            outcome = await run.result()
        except RunFailed as failure:
            outcome = failure
        return outcome, await retries(engine), asked


async def retries(engine: Client) -> list[Mapping[str, Any]]:
    history = [record async for record in engine.get("calling", "1").history()]
    return [record for record in history if record["do"] == "RetryTask"]


def delay(record: Mapping[str, Any]) -> float:
    """Seconds that were decided on between two attempts."""
    decided: float = record["not_before"] / SECOND - record["time"].timestamp()
    return round(decided, 3)


def busy(after: str) -> web.Response:
    return web.Response(status=503, headers={"Retry-After": after, "Date": DATE})


OK = web.Response(status=200)


# scenario 63: there is one count of attempts, whatever asks for another one
def test_a_server_that_always_wants_another_try_gets_no_more_than_the_node_has() -> None:
    outcome, repeated, asked = asyncio.run(tried([busy("0")], {"attempts": 3}))
    assert (outcome.kind, asked, len(repeated)) == ("http-status", 3, 2)


@pytest.mark.parametrize("after", ["3600", LATER])
def test_the_servers_wish_is_held_to_the_longest_delay_of_the_node(after: str) -> None:
    policy = {"attempts": 2, "initial": "10ms", "max_delay": "20ms"}
    _, (record,), asked = asyncio.run(tried([busy(after), OK], policy))
    assert (delay(record), asked) == (0.02, 2)


@pytest.mark.parametrize("after", ["3600", LATER])
def test_no_attempt_comes_when_the_server_wants_it_after_all_time_of_the_node(after: str) -> None:
    policy = {"attempts": 2, "max_delay": 0, "max_elapsed": "30m"}
    outcome, repeated, asked = asyncio.run(tried([busy(after), OK], policy))
    assert (outcome.kind, asked, repeated) == ("http-status", 1, [])


def test_a_wish_shorter_than_the_nodes_own_delay_is_taken() -> None:
    policy = {"attempts": 2, "initial": "1h", "max_delay": "2h"}
    _, (record,), asked = asyncio.run(tried([busy("0"), OK], policy))
    assert (delay(record), asked) == (0, 2)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 423])
def test_a_client_error_is_not_tried_again(status: int) -> None:
    answers = [web.Response(status=status, headers={"Retry-After": "0"}), OK]
    outcome, repeated, asked = asyncio.run(tried(answers, {"attempts": 3}))
    assert (outcome.kind, asked, repeated) == ("http-status", 1, [])


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_what_time_can_heal_is_tried_again(status: int) -> None:
    answers = [web.Response(status=status, headers={"Retry-After": "0"}), OK]
    outcome, _, asked = asyncio.run(tried(answers, {"attempts": 3}))
    assert (outcome["call"]["status"], asked) == (200, 2)


def test_a_node_without_a_retry_asks_once() -> None:
    outcome, repeated, asked = asyncio.run(tried([busy("0"), OK], None))
    assert (outcome.kind, asked, repeated) == ("http-status", 1, [])
