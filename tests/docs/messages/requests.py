"""Runs that fail: HTTP requests, tried against real servers of this machine."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from unittest import mock

from aiohttp import web

from perdure.client.engine import Engine
from perdure.engine.handlers.http_options import HttpOptions
from perdure.graph import Graph
from perdure.model.errors import Failure
from tests.docs.messages.case import Case, Section, compact
from tests.integration.http.servers import serving, talking

URL = "https://shop.test"
Server = AbstractAsyncContextManager[Any]


def answering(status: int, text: str = "", kind: str = "text/plain") -> Server:
    """A server that answers every request so."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, content_type=kind)

    return serving(answer)


def slow() -> Server:
    """A server that never says the end of its answer's head."""
    return talking(b"HTTP/1.1 200 OK\r\n", hold=True)


async def _ended(spec: Any, input: Any, options: HttpOptions | None) -> str:
    node = {"id": "fetch", "type": "HTTP", "spec": spec}
    graph = Graph.load({"name": "order", "nodes": [node]})
    async with Engine("memory:", [graph], http=options, grace=0) as engine:
        try:
            result = await engine.run(graph, input, id="1")
        except Failure as failure:
            return f"{failure.kind}: {failure}"
    raise AssertionError(f"it came to {result!r}")


def request(
    key: str, title: str, server: Callable[[], Server], shown: str, do: str, **spec: Any
) -> Case:
    """A request to a server."""

    async def ended() -> str:
        async with server() as at:
            url = at if isinstance(at, str) else at[0]
            return await _ended({"url": f"{url}/orders", **spec}, None, None)

    return Case(f"request.{key}", title, shown, lambda _: asyncio.run(ended()), do, "text")


def unsent(
    key: str, title: str, spec: Any, do: str, input: Any = None, options: HttpOptions | None = None
) -> Case:
    """A request that is refused before a byte is sent."""
    shown = compact(spec) + ("" if input is None else f"\ninput: {compact(input)}")

    def say(_: Any) -> str:
        return asyncio.run(_ended(spec, input, options))

    return Case(f"request.{key}", title, shown, say, do)


def sent(key: str, title: str, spec: Any) -> Case:
    """A whole spec that a run's input gives."""
    return unsent(key, title, "{{input}}", "", spec)


def saying(head: bytes, body: bytes) -> Server:
    """A server of few words."""
    length = f"Content-Length: {len(body)}\r\n\r\n".encode()
    return talking(b"HTTP/1.1 200 OK\r\n" + head + length + body)


def without_client() -> Case:
    def say(_: Any) -> str:
        find = importlib.util.find_spec

        def found(name: str, *rest: Any) -> Any:
            return None if name == "aiohttp" else find(name, *rest)

        with mock.patch("importlib.util.find_spec", found):
            return asyncio.run(_ended({"url": "https://shop.test"}, None, None))

    return Case("request.no-client", "the client of HTTP nodes is not installed", "", say)


async def _nobody() -> str:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return await _ended({"url": f"http://127.0.0.1:{port}/orders"}, None, None)


REFUSING = Case(
    "request.connect", "nobody listens there", "GET http://127.0.0.1:8080/orders",
    lambda _: asyncio.run(_nobody()),
    "Such a failure is worth another attempt: give the node a `retry`.", "text",
)  # fmt: skip

SECTIONS = [
    Section(
        "Runs that fail: HTTP",
        "A `retry` of the node repeats what may heal: no connection, no answer in time, 408, 425, "
        "429 and 5xx. Everything else fails for good at once.",
        [
            REFUSING,
            request("timeout", "no answer in time", slow, '"timeout": 0.2',
                    "Raise the `timeout` of the node.", timeout=0.2),
            request("status", "a status that was not expected", lambda: answering(404),
                    "HTTP/1.1 404 Not Found",
                    'Where it is an answer too, say so: `"expect": ["2xx", 404]`.'),
            request("server-error", "an error of the server", lambda: answering(503),
                    "HTTP/1.1 503 Service Unavailable", "Give the node a `retry`."),
            request("not-json", "an answer that says it is JSON",
                    lambda: answering(200, "<html>", "application/json"),
                    "Content-Type: application/json\n\n<html>",
                    "Ask whoever runs the service."),
            request("too-large", "an answer that is too large",
                    lambda: answering(200, "x" * 100), '"max_size": 10',
                    "Raise `max_size`, up to the engine's limit, or let a step fetch it.",
                    max_size=10),
            request("cut", "an answer that ends in the middle",
                    lambda: talking(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
                    "Content-Length: 9\n\nabc", "Give the node a `retry`."),
            unsent("no-url", "an address that is no text", {"url": "{{input.url}}"},
                   "Look where the address comes from.", {"url": None}),
            unsent("scheme", "an address of another scheme", {"url": "{{input.url}}"},
                   "", {"url": "file:///etc/passwd"}),
            unsent("credentials", "a password in an address", {"url": "{{input.url}}"},
                   "", {"url": "https://ann:secret@shop.test"}),
            unsent("host", "a host that is not let be called",
                   {"url": "https://elsewhere.test"},
                   "Name it with `--allow-host`, or in `HttpOptions(allow_hosts=…)`.",
                   options=HttpOptions(allow_hosts=["shop.test"])),
            unsent("method", "a method that does not exist",
                   {"url": "https://shop.test", "method": "{{input.method}}"}, "",
                   {"method": "FETCH"}),
            unsent("header", "a header with a line break",
                   {"url": "https://shop.test", "headers": {"X-A": "{{input.a}}"}},
                   "Take it out where the value comes from.", {"a": "1\r\nX-B: 2"}),
            unsent("query", "a parameter that is an object",
                   {"url": "https://shop.test", "query": {"page": "{{input.page}}"}},
                   "", {"page": {"n": 1}}),
            sent("spec", "a spec that is no object", "https://shop.test"),
            sent("space", "a space in an address", {"url": "https://shop.test/my order"}),
            sent("port", "a port that is none", {"url": "https://shop.test:port"}),
            sent("no-host", "an address without its host", {"url": "https:///orders"}),
            sent("headers", "headers that are a list", {"url": URL, "headers": []}),
            sent("header-name", "a header whose name is none",
                 {"url": URL, "headers": {"X Y": "1"}}),
            sent("framing", "a header that the client writes itself",
                 {"url": URL, "headers": {"Host": "a"}}),
            sent("header-twice", "a header that is there twice",
                 {"url": URL, "headers": {"X-A": "1", "x-a": "2"}}),
            sent("header-value", "a header that is a list", {"url": URL, "headers": {"X-A": []}}),
            sent("query-list", "a query that is a list", {"url": URL, "query": []}),
            sent("body", "a body that is an object", {"url": URL, "body": {}}),
            sent("two-bodies", "two bodies", {"url": URL, "body": "", "json": 1}),
            sent("expect", "a status that does not exist", {"url": URL, "expect": "ok"}),
            sent("max-size", "a size that is none", {"url": URL, "max_size": "1MB"}),
            sent("redirects", "redirects", {"url": URL, "redirects": True}),
            request("packed", "an answer packed as nobody asked for",
                    lambda: saying(b"Content-Encoding: br\r\n", b"abc"),
                    "Content-Encoding: br", "Ask whoever runs the service."),
            request("unpacked", "an answer that is not packed as it says",
                    lambda: saying(b"Content-Encoding: gzip\r\n", b"abc"),
                    "Content-Encoding: gzip\n\nabc", "Ask whoever runs the service."),
            request("charset", "a text that is in no known writing",
                    lambda: saying(b"Content-Type: text/plain; charset=utf-8\r\n", b"\xff\xfe"),
                    "Content-Type: text/plain; charset=utf-8", "Ask whoever runs the service."),
            request("no-answer", "an answer that is no HTTP", lambda: talking(b"hello\r\n\r\n"),
                    "hello", "Look whether this is the right port."),
            without_client(),
        ],
    )
]  # fmt: skip
