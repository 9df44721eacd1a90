"""HttpHandler: the requests of HTTP nodes.

One connection pool per engine, made at the first request. No cookies and no redirects: nothing
of one run reaches another, and a request goes where its document says or nowhere. Needs the
extra `http`, which is imported at the first request, on another thread: it takes a while, and the
loop has other runs to see to.
"""

from __future__ import annotations

import asyncio
import importlib.util
import io
import logging
import os
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from perdure.engine.clock import SystemClock
from perdure.engine.handlers.http_body import TooLarge, decoded, read_body, read_start
from perdure.engine.handlers.http_guard import HostList, WatchedResolver
from perdure.engine.handlers.http_options import HttpOptions, check_options, tls
from perdure.engine.handlers.http_retry import heals, retry_after
from perdure.engine.handlers.http_spec import Request, read_spec, read_timeout
from perdure.engine.handlers.http_url import refused
from perdure.engine.handlers.port import Attempt
from perdure.model.durations import SECOND
from perdure.model.errors import Failure
from perdure.model.policy import NO_RETRY, RetryPolicy
from perdure.model.step_context import StepContext

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

__all__ = ["HttpHandler", "HttpOptions"]

DEFAULT_TIMEOUT: Final = 30 * SECOND
CONNECT_TIMEOUT: Final = 10 * SECOND
#: How long after its own timeout a request is given up from outside: the client rounds up to
#: whole seconds.
GRACE: Final = 2 * SECOND
#: Larger bodies are sent piece by piece.
WHOLE_BODY: Final = 256 * 1024
#: How much of an unexpected answer is kept for people to read.
SHOWN_BODY: Final = 2048

_log = logging.getLogger("perdure.engine.http")


class HttpHandler:
    """Sends the request of an HTTP node's spec; output {status, headers, body}.

    An answer with an unexpected status is a failure of kind http-status; trouble on the way is
    http-connect, http-timeout, http-too-large or http-body; http-url, http-request and
    http-forbidden are permanent and mean that nothing was sent.
    """

    def __init__(
        self, options: HttpOptions | None = None, redact: Callable[[str], str] = str
    ) -> None:
        """`redact`: takes secrets out of what is shown of an answer."""
        self._options = options or HttpOptions()
        self._redact = redact
        self._hosts = HostList(self._options.allow_hosts)
        self._tls = tls(self._options)
        check_options(self._options)
        self._imported = False
        self._session: ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @staticmethod
    def available() -> bool:
        """Whether the extra `http` is installed."""
        return importlib.util.find_spec("aiohttp") is not None

    def timeout(self, attempt: Attempt, /) -> int:
        """A little more than the request's own timeout, which ends it first; 0 = no limit."""
        limit = limit_of(attempt)
        return limit + GRACE if limit else 0

    def policy(self, step: str, /) -> RetryPolicy:
        """One attempt, unless the node says otherwise."""
        return NO_RETRY

    def retries(self, attempt: Attempt, error: Exception, /) -> bool:
        """Always: failures that should not be repeated are permanent themselves."""
        return True

    async def run(self, attempt: Attempt, context: StepContext, /) -> dict[str, Any]:
        """Send the request and read the answer.

        Returns {status, headers, body}: header names in lower case, repeated ones joined by
        ", "; body: a JSON answer's value (null if empty), text, or base64 with "encoding":
        "base64" beside it. Raises Failure.
        """
        if not self.available():
            raise refused(
                "http-unavailable",
                "HTTP nodes need aiohttp, which is not installed: pip install 'perdure[http]'",
            )
        read_timeout(attempt.input)
        request = read_spec(attempt.input, context.idempotency_key)
        self._hosts.check(request.target)
        if not self._imported:
            await asyncio.to_thread(importlib.import_module, "aiohttp")
            self._imported = True
        return await self._send(request, limit_of(attempt))

    async def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    async def _send(self, request: Request, limit: int) -> dict[str, Any]:
        import aiohttp
        from yarl import URL

        timeout = aiohttp.ClientTimeout(
            total=limit / SECOND if limit else None, sock_connect=CONNECT_TIMEOUT / SECOND
        )
        try:
            async with self._client().request(
                request.method,
                URL(request.target.url, encoded=True),
                headers=request.headers,
                data=_sendable(request.body),
                allow_redirects=False,
                proxy=self._options.proxy,
                timeout=timeout,
            ) as response:
                return await self._answer(request, response)
        except aiohttp.ConnectionTimeoutError as error:
            raise _trouble("http-connect", request, "no connection in time") from error
        except TimeoutError as error:
            raise _trouble("http-timeout", request, f"took over {limit / SECOND:g} s") from error
        except aiohttp.ClientResponseError as error:
            raise _trouble("http-body", request, f"bad answer: {error.message}") from error
        except aiohttp.ClientPayloadError as error:
            why = "the answer broke off before its end"
            raise _trouble("http-connect", request, why) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _trouble("http-connect", request, _reason(error)) from error

    async def _answer(self, request: Request, response: ClientResponse) -> dict[str, Any]:
        chunks = response.content.iter_any()
        packed = response.headers.get("Content-Encoding", "")
        if response.status not in request.expect:
            start = await read_start(chunks, packed.strip().lower(), 2 * SHOWN_BODY)
            # A secret that was cut in two could not be found any more: first hidden, then cut.
            shown = _cut(self._redact(start.decode("utf-8", "replace")))
            raise unexpected_status(request, response.status, response.headers, shown)
        most = min(request.max_size or self._options.max_size, self._options.max_size)
        try:
            body = await read_body(chunks, packed, most)
            value, is_base64 = decoded(body, response.headers.get("Content-Type", ""))
        except TooLarge:
            failure = refused("http-too-large", f"{request.shown}: the answer is over {most} bytes")
            failure.details = {"status": response.status}
            raise failure from None
        except Failure as failure:
            failure.message = f"{request.shown}: {failure.message}"
            failure.details = {"status": response.status}
            raise
        output = {
            "status": response.status,
            "headers": joined(response.headers.items()),
            "body": value,
        }
        return output | {"encoding": "base64"} if is_base64 else output

    def _client(self) -> ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            self._session, self._loop = self._new_session(), loop
        return self._session

    def _new_session(self) -> ClientSession:
        import aiohttp

        resolver: Any = aiohttp.ThreadedResolver()
        if self._hosts.is_set:
            resolver = WatchedResolver(resolver, self._hosts)
        if self._options.verify is False:
            _log.warning("HTTP nodes do not check certificates: verify=False is for tests")
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=self._tls, resolver=resolver, limit=self._options.connections
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={
                "User-Agent": self._options.user_agent,
                "Accept-Encoding": "gzip, deflate",
            },
            trust_env=False,
        )


def limit_of(attempt: Attempt) -> int:
    """How long the request may take in µs: the node's timeout, the spec's, or 30 s."""
    if attempt.timeout is not None:
        return attempt.timeout
    try:
        said = read_timeout(attempt.input)
    except Failure:  # told by run()
        said = None
    return DEFAULT_TIMEOUT if said is None else said


def _sendable(body: bytes | None) -> bytes | io.BytesIO | None:
    return io.BytesIO(body) if body and len(body) > WHOLE_BODY else body


def _trouble(kind: str, request: Request, what: str) -> Failure:
    return Failure(f"{request.shown}: {what}", kind=kind)


def _reason(error: Exception) -> str:
    """Why there is no connection, without the client's own jargon."""
    from aiohttp import ClientConnectorError, ClientSSLError

    if isinstance(error, ClientConnectorError) and not isinstance(error, ClientSSLError):
        number, text = error.os_error.errno or 0, error.os_error.strerror
        why = os.strerror(number) if number > 0 else text or str(error.os_error)
        return f"no connection to {error.host}:{error.port}: {why}"
    return str(error) or type(error).__name__


def _cut(text: str) -> str:
    return text.encode()[:SHOWN_BODY].decode("utf-8", "ignore")


def unexpected_status(request: Request, status: int, headers: Any, shown: str) -> Failure:
    """The failure of an answer whose status was not expected; `shown`: the start of its body."""
    try:
        phrase = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = str(status)
    failure = Failure(
        f"{request.shown}: unexpected status {phrase}",
        kind="http-status",
        details={"status": status, "body": shown},
        retry_after=retry_after(headers, SystemClock().now()),
    )
    failure.permanent = not heals(status)
    return failure


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by lower-case name, repeated ones joined by ", "; bytes beyond UTF-8 as Latin-1."""
    found: dict[str, str] = {}
    for name, value in headers:
        try:
            value.encode()
        except UnicodeEncodeError:
            value = value.encode("utf-8", "surrogateescape").decode("latin-1")  # noqa: PLW2901
        lower = name.lower()
        found[lower] = f"{found[lower]}, {value}" if lower in found else value
    return found
