"""Where an HTTP request goes: one reading of the URL, for the check and for the connection.

The URL is put together again from the parts that were checked, so that no other reader can find
another host in it. What is already percent-encoded stays as it is: signed URLs survive. Refuses
credentials, control characters and every scheme but http and https; no message shows a query,
where keys are put.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import msgspec

from perdure.model.errors import Failure
from perdure.model.json_words import json_kind

#: What stays as it is in a URL; anything else is percent-encoded.
_LEGAL: Final = "!#$%&'()*+,/:;=?@[]~"
_PORTS: Final = {"http": 80, "https": 443}


class Target(msgspec.Struct, frozen=True):
    """`url` is ASCII and whole; `shown` is for messages; `host` lower case, without brackets."""

    url: str
    host: str
    port: int
    shown: str


def refused(kind: str, message: str) -> Failure:
    """A failure that no further attempt can mend."""
    failure = Failure(message, kind=kind)
    failure.permanent = True
    return failure


def read_url(url: Any, query: Any = None) -> Target:
    """The target of a request. Raises a permanent Failure, kind http-url."""
    if not isinstance(url, str) or not url:
        raise refused("http-url", f"url is {json_kind(url)}, not text: give a whole URL")
    if not url.isprintable() or any(c.isspace() or c == "\\" for c in url):
        raise refused(
            "http-url", "url holds a space, a backslash or a control character: percent-encode it"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _ascii_host(parts)
    except (ValueError, UnicodeError):
        raise refused("http-url", "url cannot be read: check its host and port") from None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        raise refused("http-url", f"url has scheme {scheme!r}: use http or https")
    if "@" in parts.netloc:
        raise refused(
            "http-url",
            "url holds a user name or password: send them in an Authorization header, "
            "from {{secrets.<name>}}",
        )
    if not host or port == 0:
        raise refused("http-url", "url has no host, or port 0: give a whole URL")
    authority = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS[scheme]:
        authority += f":{port}"
    path = quote(parts.path, safe=_LEGAL) or "/"
    text = "&".join(filter(None, (quote(parts.query, safe=_LEGAL), _written(query))))
    whole = f"{scheme}://{authority}{path}"
    return Target(f"{whole}?{text}" if text else whole, host, port or _PORTS[scheme], whole)


def _ascii_host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    if not host.isascii():
        host = host.encode("idna").decode("ascii").lower()
    labels = host.split(".")
    if not all(c.isalnum() or c in "-._:" for c in host) or (
        len(labels) > 1 and not all(0 < len(label) <= 63 for label in labels)
    ):
        raise ValueError(host)
    return host


def _written(query: Any) -> str:
    """Query parameters; a list repeats its name, null leaves it out."""
    if query is None:
        return ""
    if not isinstance(query, dict):
        raise refused("http-request", f"query is {json_kind(query)}: give an object")
    pairs = [
        (name, _parameter(name, value))
        for name, values in query.items()
        for value in (values if isinstance(values, list) else [values])
        if value is not None
    ]
    try:
        return urlencode(pairs, quote_via=quote)
    except UnicodeEncodeError:
        raise refused("http-request", "query holds text that is not valid Unicode") from None


def _parameter(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (str, int, float)):
        return str(value)
    raise refused(
        "http-request", f"query parameter {name!r} is {json_kind(value)}: use text or numbers"
    )
