"""What an HTTP node asks for, checked and ready to send.

The spec arrives with its templates filled in, so anything can stand in it. Everything that could
make the request another one than the document's author meant (line breaks in headers, headers
that frame the message, values that are not text) is a permanent failure before a byte is sent.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from perdure.codec.values import JsonCodec
from perdure.engine.handlers.http_url import Target, read_url, refused
from perdure.model.durations import microseconds
from perdure.model.errors import InvalidOptions, InvalidRequest
from perdure.model.json_words import json_kind

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SUCCESS: Final = frozenset(range(200, 300))

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_CLASS: Final = re.compile(r"[1-5]xx")
#: Written by the client itself: they say where the message goes and where it ends.
_FRAMING: Final = frozenset(
    {
        *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_json = JsonCodec()


class Request(msgspec.Struct, frozen=True):
    """A request to send. `expect` holds the statuses that are a success."""

    method: str
    target: Target
    headers: dict[str, str]
    body: bytes | None
    expect: frozenset[int]
    max_size: int | None = None

    @property
    def shown(self) -> str:
        """The request in messages: without its query."""
        return f"{self.method} {self.target.shown}"


def read_spec(spec: Any, idempotency_key: str) -> Request:
    """The request of a spec. Raises a permanent Failure, kind http-url or http-request."""
    if not isinstance(spec, dict):
        raise refused("http-request", f"the spec is {json_kind(spec)}, not an object")
    if spec.get("redirects"):
        raise refused(
            "http-request", "redirects are not followed: expect 3xx and look at headers.location"
        )
    headers = _headers(spec.get("headers"))
    body, content_type = _body(spec)
    known = {name.lower() for name in headers}
    if body is not None and "content-type" not in known:
        headers["Content-Type"] = content_type
    if "idempotency-key" not in known:
        headers["Idempotency-Key"] = idempotency_key
    return Request(
        method=_method(spec.get("method")),
        target=read_url(spec.get("url"), spec.get("query")),
        headers=headers,
        body=body,
        expect=_expected(spec.get("expect")),
        max_size=_max_size(spec.get("max_size")),
    )


def read_timeout(spec: Any) -> int | None:
    """The spec's own timeout in µs; None = not said. Raises a permanent Failure."""
    said = spec.get("timeout") if isinstance(spec, dict) else None
    if said is None:
        return None
    try:
        return microseconds(said, "timeout")
    except InvalidOptions as error:
        raise refused("http-request", str(error)) from None


def _method(method: Any) -> str:
    if method is None:
        return "GET"
    if isinstance(method, str) and method.upper() in METHODS:
        return method.upper()
    raise refused("http-request", f"method {method!r}: use one of {', '.join(sorted(METHODS))}")


def _headers(headers: Any) -> dict[str, str]:
    if headers is None:
        return {}
    if not isinstance(headers, dict):
        raise refused("http-request", f"headers are {json_kind(headers)}: give an object")
    seen: set[str] = set()
    for name in headers:
        lower = name.lower()
        if not _TOKEN.fullmatch(name):
            raise refused("http-request", f"{name!r} cannot be the name of a header")
        if lower in _FRAMING:
            raise refused("http-request", f"header {name} is the client's own: leave it out")
        if lower in seen:
            raise refused("http-request", f"header {name} is there twice: keep one")
        seen.add(lower)
    return {name: _header(name, value) for name, value in headers.items()}


def _header(name: str, value: Any) -> str:
    # No message shows the value: it may be a secret.
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise refused("http-request", f"header {name} is {json_kind(value)}: use text or a number")
    text = str(value)
    if _CONTROL.search(text):
        raise refused("http-request", f"header {name} holds a line break or control character")
    return text.strip()


def _body(spec: dict[str, Any]) -> tuple[bytes | None, str]:
    """The body and the type it has unless the headers say otherwise."""
    text = spec.get("body")
    if "json" in spec:
        if text is not None:
            raise refused("http-request", 'a request has one body: "json" or "body"')
        try:
            return _json.encode(spec["json"]), "application/json"
        except InvalidRequest as error:
            raise refused("http-request", f"json: {error}") from None
    if text is None:
        return None, ""
    if not isinstance(text, str):
        raise refused("http-request", f"body is {json_kind(text)}: use text, or json")
    try:
        return text.encode(), "text/plain; charset=utf-8"
    except UnicodeEncodeError:
        raise refused("http-request", "body is not valid Unicode") from None


def _expected(expect: Any) -> frozenset[int]:
    if expect is None:
        return SUCCESS
    statuses: set[int] = set()
    for said in expect if isinstance(expect, list) else [expect]:
        if isinstance(said, str) and _CLASS.fullmatch(said):
            statuses.update(range(int(said[0]) * 100, int(said[0]) * 100 + 100))
        elif isinstance(said, (int, float)) and said in range(100, 600):
            statuses.add(int(said))
        else:
            raise refused("http-request", f"expect {said!r}: use statuses like 404, or '2xx'")
    return frozenset(statuses)


def _max_size(size: Any) -> int | None:
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, (int, float)) or size < 1 or size % 1:
        raise refused("http-request", f"max_size {size!r}: use a number of bytes")
    return int(size)
