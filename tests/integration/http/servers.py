"""Real servers on loopback for tests of HTTP nodes, and a handler to send requests with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from perdure.engine.handlers.http import HttpHandler
from perdure.engine.handlers.http_options import HttpOptions
from perdure.engine.handlers.port import Attempt
from perdure.model.step_context import StepContext

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(answer: Answer, **site: Any) -> AsyncIterator[str]:
    """A web server that gives every request to `answer`; its base URL."""
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, auto_decompress=False, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, **site).start()
        port = runner.addresses[0][1]
        yield f"{'https' if site.get('ssl_context') else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def talking(*parts: bytes, hold: bool = False) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that says these bytes after each request's head, then hangs up (or holds on)."""
    heads: list[bytes] = []
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            for part in parts:
                writer.write(part)
                await writer.drain()
            if hold:
                await over.wait()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    finally:
        over.set()
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def handling(
    *, redact: Callable[[str], str] = str, **options: Any
) -> AsyncIterator[HttpHandler]:
    """A handler that is closed at the end."""
    handler = HttpHandler(HttpOptions(**options), redact)
    try:
        yield handler
    finally:
        await handler.close()


async def send(handler: HttpHandler, spec: Any, limit: int | None = None) -> dict[str, Any]:
    """What a node with this spec gets."""
    attempt = Attempt("order", "o-1", "call", "HTTP", "task-1", 0, spec, limit)
    return await handler.run(attempt, StepContext(attempt))


async def once(spec: dict[str, Any], limit: int | None = None, **options: Any) -> dict[str, Any]:
    """`send` with a handler of its own."""
    async with handling(**options) as handler:
        return await send(handler, spec, limit)
