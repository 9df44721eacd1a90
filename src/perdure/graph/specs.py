"""What the spec of each type of node may hold.

A misspelt key or a wrong type is found here, before any run waits for it. Values that hold a
template are judged when they are known, by the handler.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from perdure.graph.document import NodeEntry
from perdure.graph.form import Form, named, templated
from perdure.graph.read import pointer
from perdure.graph.waits import check_event, check_signal, check_wait
from perdure.kernel.children import CHILD_KEYS
from perdure.model.errors import InvalidId, InvalidName
from perdure.model.graph_rules import Finding
from perdure.model.names import check_name, check_run_id

HTTP_KEYS: Final = (
    *("method", "url", "headers", "query", "json", "body"),
    *("timeout", "expect", "max_size", "redirects"),
)
TASK_KEYS: Final = ("step", "input")
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MAX_SIZE: Final = 2**40

_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
#: Headers that the client writes itself: they say where a message goes and where it ends.
FRAMING: Final = frozenset(
    {
        *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_NAME_HINT: Final = "use letters, digits and -, as in X-Request-Id"
_SCHEMES: Final = ("http://", "https://")
_STATUS_CLASS: Final = re.compile(r"[1-5]xx")


def check_spec(node: NodeEntry, findings: list[Finding]) -> None:
    """Everything wrong with a node's spec goes to `findings`."""
    if not node.type:
        return
    at = pointer(node.at, "spec")
    if node.type not in _CHECKS:
        if node.spec not in (None, {}):
            message = f"a {node.type} has no spec"
            findings.append(Finding(at, message, node.id, "take it out"))
        return
    if node.spec is None:
        message = f'"spec" is missing: a {node.type} needs one'
        findings.append(Finding(node.at, message, node.id, _EXAMPLES[node.type]))
        return
    if templated(node.spec):
        return  # it is known, and judged, when a run reaches the node (G-67)
    form = Form(node.spec, at, findings, node.id, _EXAMPLES[node.type])
    if isinstance(node.spec, dict):
        _CHECKS[node.type](form)


def _check_task(form: Form) -> None:
    form.only(TASK_KEYS)
    if not form.required("step", '"step": "ship-order"'):
        return
    step = form.typed("step", str, "write the name of a step")
    if step is not None and not templated(step):
        try:
            check_name(step, "step")
        except InvalidName as error:
            form.problem("step", str(error))


def _check_child(form: Form) -> None:
    form.only(CHILD_KEYS)
    if form.required("workflow", '"workflow": "payment"'):
        name = form.typed("workflow", str, "write the name of a workflow or a graph")
        if name is not None and not templated(name):
            try:
                check_name(name, "workflow")
            except InvalidName as error:
                form.problem("workflow", str(error))
    id = form.value.get("id")
    if id is None or templated(id) or type(id) is int:
        return
    try:
        check_run_id(id)
    except InvalidId as error:
        form.problem("id", str(error), 'write text, as in "pay-{{input.order_id}}"')


def _check_http(form: Form) -> None:
    form.only(HTTP_KEYS)
    if form.required("url", '"url": "https://…"'):
        _check_url(form)
    method = form.value.get("method")
    if isinstance(method, str) and method not in METHODS and method.upper() in METHODS:
        known = ", ".join(METHODS)
        form.problem("method", f"{named(method)} is none of {known}", f'write "{method.upper()}"')
    elif not templated(method):
        form.choice("method", METHODS)
    _check_headers(form)
    _check_query(form)
    form.typed("body", str, 'for a JSON body use "json"')
    if form.value.get("body") is not None and "json" in form.value:
        form.problem("body", 'a request has one body: "json" or "body"', "take one out")
    if not templated(form.value.get("timeout")):
        form.duration("timeout")
    _check_expect(form)
    size = form.value.get("max_size")
    if not (size is None or templated(size) or (type(size) is int and 1 <= size <= MAX_SIZE)):
        form.problem("max_size", f"{named(size)} is no size", f"use bytes, 1 to {MAX_SIZE:,}")
    if form.value.get("redirects"):
        hint = 'say "expect": "3xx" and read headers.location of the output'
        form.problem("redirects", "redirects are not followed", hint)


def _check_url(form: Form) -> None:
    url = form.typed("url", str)
    if url is None:
        return
    start = url.partition("{{")[0]
    if not start.isprintable() or " " in start:
        form.problem("url", "this URL holds a space or a control character", "write it as %20")
    elif "@" in start.partition("//")[2].partition("/")[0]:
        hint = "send them in an Authorization header, from {{secrets.<name>}}"
        form.problem("url", "this URL holds a user name or password", hint)
    elif templated(url):
        if start and not any(start.startswith(s) or s.startswith(start) for s in _SCHEMES):
            form.problem("url", "this URL is not http or https", 'start with "https://"')
    elif not (url.startswith(_SCHEMES) and re.match(r"https?://[^/?#]", url)):
        form.problem("url", f"{named(url)} is not a whole URL", 'start with "https://" and a host')


def _check_headers(form: Form) -> None:
    seen: set[str] = set()
    for name, value in (form.typed("headers", dict) or {}).items():
        if not _HEADER.fullmatch(name):
            form.problem("headers", f"{named(name)} cannot be a header's name", _NAME_HINT, name)
        elif name.lower() in FRAMING:
            form.problem("headers", f"the header {name} is the client's own", "take it out", name)
        elif name.lower() in seen:
            form.problem("headers", f"the header {name} is there twice", "keep one", name)
        seen.add(name.lower())
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            form.problem("headers", f"this is {named(value)}, not text", "write text", name)
        elif isinstance(value, str) and _CONTROL.search(value):
            hint = "take it out"
            form.problem("headers", "a line break or control character is in it", hint, name)


def _check_query(form: Form) -> None:
    if templated(form.value.get("query")):
        return
    for name, value in (form.typed("query", dict) or {}).items():
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, str | int | float | bool):
                hint = "use text, numbers or lists of them"
                form.problem("query", f"this holds {named(item)}", hint, name)
                break


def _check_expect(form: Form) -> None:
    value = form.value.get("expect")
    if value is None or templated(value):
        return
    if value == []:
        form.problem("expect", "no status is ever expected", "leave it out for 2xx")
    for status in value if isinstance(value, list) else [value]:
        number = type(status) is int and 100 <= status <= 599
        group = isinstance(status, str) and (templated(status) or _STATUS_CLASS.fullmatch(status))
        if not number and not group:
            hint = 'use numbers from 100 to 599, or "2xx"'
            form.problem("expect", f"{named(status)} is not an HTTP status", hint)


_CHECKS: Final[Mapping[str, Callable[[Form], None]]] = {
    "HTTP": _check_http,
    "TASK": _check_task,
    "CHILD": _check_child,
    "WAIT": check_wait,
    "WAIT_FOR_SIGNAL": check_signal,
    "WAIT_FOR_EVENT": check_event,
}
_EXAMPLES: Final = {
    "HTTP": 'write "spec": {"url": "https://…"}',
    "TASK": 'write "spec": {"step": "ship-order", "input": {…}}',
    "CHILD": 'write "spec": {"workflow": "payment", "input": {…}}',
    "WAIT": 'write "spec": {"duration": "24h"}',
    "WAIT_FOR_SIGNAL": 'write "spec": {"signal": "approved", "timeout": "24h"}',
    "WAIT_FOR_EVENT": 'write "spec": {"event": "approved", "timeout_seconds": 3600}',
}
