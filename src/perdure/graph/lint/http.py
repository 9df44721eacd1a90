"""Doubts about requests: bodies where none is read, secrets in the clear or in the document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from perdure.graph.check import Checked
from perdure.graph.document import NodeEntry
from perdure.graph.form import templated
from perdure.graph.lint.doubt import warning
from perdure.graph.read import pointer
from perdure.model.graph_rules import Finding

_WITHOUT_BODY: Final = ("GET", "HEAD")
_CREDENTIALS: Final = ("authorization", "cookie", "x-api-key", "api-key", "x-auth-token")


def doubtful_requests(checked: Checked) -> Iterator[Finding]:
    """All doubts about HTTP nodes."""
    secret = {r.node for r in checked.templates.readings if "secrets" in r.refs.roots}
    for node in checked.document.nodes:
        if node.type == "HTTP" and isinstance(node.spec, dict):
            yield from _bodies(node, node.spec)
            yield from _secrets(node, node.spec, node.id in secret)


def _bodies(node: NodeEntry, spec: dict[str, Any]) -> Iterator[Finding]:
    said = spec.get("method")
    method = "GET" if said is None else said
    body = "json" if "json" in spec else "body" if spec.get("body") is not None else ""
    if body and method in _WITHOUT_BODY:
        which = f"a {method}" if said is not None else 'without a "method" this is a GET, which'
        message = f"{which} has no body: servers ignore this one, or refuse it"
        yield warning(f"{node.at}/spec/{body}", node.id, message, 'say "method": "POST"')
    text = spec.get("json")
    if isinstance(text, str) and not templated(text) and _is_json(text):
        message = "this is a text that holds JSON, and is sent as a text"
        hint = 'write the object itself, or send the text as "body"'
        yield warning(f"{node.at}/spec/json", node.id, message, hint)


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _secrets(node: NodeEntry, spec: dict[str, Any], reads: bool) -> Iterator[Finding]:
    """A secret sent where anybody on the way reads it, or written where it is kept for ever."""
    headers = spec.get("headers")
    url = spec.get("url")
    if isinstance(url, str) and url.startswith("http://") and reads and not _is_local(url):
        message = "a secret is sent over plain http: whoever is on the way reads it"
        yield warning(f"{node.at}/spec/url", node.id, message, "use https")
    for name, value in (headers if isinstance(headers, dict) else {}).items():
        if name.lower() in _CREDENTIALS and isinstance(value, str) and not templated(value):
            message = "this looks like a credential: the store keeps it with every version"
            at = pointer(f"{node.at}/spec/headers", name)
            yield warning(at, node.id, message, "write {{secrets.<name>}} instead")


def _is_local(url: str) -> bool:
    try:
        host = urlsplit(url.partition("{{")[0]).hostname or ""
    except ValueError:
        return True  # no URL: an error of its own
    return (
        host in ("", "::1", "localhost") or host.startswith("127.") or host.endswith(".localhost")
    )
