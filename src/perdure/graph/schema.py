"""The JSON Schema (2020-12) of graph documents, for editors and other programs.

It says which keys there are and what they hold. What it cannot say (ids that exist, no circles,
templates that compile) `Graph.load` says; every document that loads is valid by this schema.
"""

from __future__ import annotations

from typing import Any, Final

from perdure.graph.document import LATER_TYPES, MAX_NODES, ON_FAILURE, TYPES, WAITS
from perdure.graph.specs import MAX_SIZE, METHODS
from perdure.graph.waits import MAX_SIGNAL_NAME, ON_TIMEOUT

_TEMPLATE: Final = {"type": "string", "pattern": r"\{\{"}
_DURATION: Final = {
    "description": 'Seconds, or text such as "30s", "5m", "72h", "7d", "1h30m", "250ms".',
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\s*(\d+(\.\d+)?(us|ms|s|m|h|d|w))+\s*$"},
    ],
}
_NAME: Final = {
    "type": "string",
    "pattern": r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$",
    "description": "1-64 characters of a-z 0-9 -, no hyphen at either end.",
}
_NODE_ID: Final = {
    "type": "string",
    "maxLength": 256,
    "pattern": r"^[A-Za-z_]([A-Za-z0-9_-]*[A-Za-z0-9_])?$",
    "description": "Letters, digits, _ and -; starts with a letter or _, does not end in -.",
}
_SIGNAL: Final = {
    "anyOf": [{"type": "string", "minLength": 1, "maxLength": MAX_SIGNAL_NAME}, _TEMPLATE],
    "description": "The signal's name.",
}
_NUMBER: Final = {
    "type": "string",
    "pattern": r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$",
}
_SECONDS: Final = {
    "description": "Seconds, as a number or as text that is one.",
    "anyOf": [
        {"type": "number", "minimum": 0},
        _NUMBER,
        _TEMPLATE,
    ],
}
_LABEL: Final = {"type": "string", "minLength": 1, "maxLength": 256}


def json_schema() -> dict[str, Any]:
    """The schema, made anew for each call: it may be changed."""
    top = _object(
        {
            "name": _NAME,
            "version": {**_LABEL, "maxLength": 64, "description": "A label. Default: the hash."},
            "description": {"type": "string"},
            "input": {
                "type": ["object", "boolean"],
                "description": "A JSON Schema of what a start gives. Needs the extra [schema].",
            },
            "entry": {"$ref": "#/$defs/id", "description": "Where runs start."},
            "max_duration": {"$ref": "#/$defs/duration", "description": "Default: no end."},
            "retention": {"$ref": "#/$defs/duration", "description": "Default: 30 days."},
            "on_failure": {
                "enum": list(ON_FAILURE),
                "default": "continue",
                "description": "What other branches do when a node has failed for good.",
            },
            "nodes": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_NODES,
                "items": {"$ref": "#/$defs/node"},
            },
            "edges": {"type": "array", "items": {"$ref": "#/$defs/edge"}},
            "output": {
                "description": "The run's output, with templates. Default: the outputs of the "
                "completed nodes without outgoing edges, by id.",
            },
        },
        ["name", "nodes"],
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "perdure graph document",
        **top,
        "$defs": {
            "id": _NODE_ID,
            "duration": _DURATION,
            "template": _TEMPLATE,
            "retry": _retry(),
            "edge": _edge(),
            "node": _node(),
            "http": _http(),
            "task": _task(),
            "child": _child(),
            "seconds": _SECONDS,
            "wait": _wait(),
            "wait_for_signal": _wait_for_signal(),
            "wait_for_event": _wait_for_event(),
        },
    }


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {k: v if k in required else _or_null(v) for k, v in properties.items()},
        "required": required,
        "additionalProperties": False,
    }


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]} if schema else schema


def _retry() -> dict[str, Any]:
    kinds = {"type": "array", "items": {"type": "string", "minLength": 1}}
    return _object(
        {
            "attempts": {"type": "integer", "minimum": 1, "description": "Executions in all."},
            "initial": {"$ref": "#/$defs/duration", "description": "Default 1 s."},
            "factor": {"type": "number", "default": 2},
            "max_delay": {"$ref": "#/$defs/duration", "description": "Default 30 s; 0: no cap."},
            "jitter": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
            "max_elapsed": {"$ref": "#/$defs/duration", "description": "Default: none."},
            "retry_on": kinds,
            "never_on": kinds,
        },
        ["attempts"],
    )


def _edge() -> dict[str, Any]:
    return _object(
        {
            "from": {"$ref": "#/$defs/id"},
            "to": {"$ref": "#/$defs/id"},
            "condition": {**_TEMPLATE, "description": "Of edges that leave a SWITCH."},
            "default": {
                "type": "boolean",
                "description": "Taken when no condition of the SWITCH holds.",
            },
        },
        ["from", "to"],
    )


def _node() -> dict[str, Any]:
    schema = _object(
        {
            "id": {"$ref": "#/$defs/id"},
            "type": {
                "enum": list(TYPES),
                "description": f"Later versions: {', '.join(LATER_TYPES)}.",
            },
            "spec": {"anyOf": [{"type": "object"}, {"$ref": "#/$defs/template"}]},
            "retry": {"$ref": "#/$defs/retry"},
            "timeout": {"$ref": "#/$defs/duration", "description": "Of one attempt; 0: none."},
            "label": _LABEL,
        },
        ["id", "type"],
    )
    control = {"properties": {"spec": {"anyOf": [{"maxProperties": 0}, {"type": "null"}]}}}
    nothing = {"not": {"anyOf": [{"required": [k]} for k in ("retry", "timeout")]}}
    return {
        **schema,
        "allOf": [
            _when(["HTTP"], {"properties": {"spec": _spec("http")}, "required": ["spec"]}),
            _when(["TASK"], {"properties": {"spec": _spec("task")}, "required": ["spec"]}),
            _when(["CHILD"], {"properties": {"spec": _spec("child")}, "required": ["spec"]}),
            *(
                _when([kind], {"properties": {"spec": _spec(kind.lower())}, "required": ["spec"]})
                for kind in sorted(WAITS)
            ),
            _when(["SWITCH", "FORK", "JOIN"], control),
            _when(["SWITCH", "FORK", "JOIN", *sorted(WAITS)], nothing),
        ],
    }


def _spec(name: str) -> dict[str, Any]:
    return {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"$ref": "#/$defs/template"}]}


def _when(types: list[str], then: dict[str, Any]) -> dict[str, Any]:
    return {"if": {"properties": {"type": {"enum": types}}, "required": ["type"]}, "then": then}


def _task() -> dict[str, Any]:
    step = {"anyOf": [_NAME, {"$ref": "#/$defs/template"}], "description": "The step's name."}
    return _object({"step": step, "input": {}}, ["step"])


def _child() -> dict[str, Any]:
    name = {"anyOf": [_NAME, _TEMPLATE], "description": "A workflow or a graph, by its name."}
    id = {"type": "string", "minLength": 1}
    return _object(
        {
            "workflow": name,
            "id": {
                "anyOf": [id, {"type": "integer"}],
                "description": "Of the run. Default: <workflow>/<run>/<node> of this one.",
            },
            "input": {},
        },
        ["workflow"],
    )


def _wait() -> dict[str, Any]:
    until = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d[Tt ].*([Zz]|[-+]\d\d:\d\d)$|\{\{"}
    return {
        **_object(
            {
                "duration": {"anyOf": [{"$ref": "#/$defs/duration"}, _NUMBER, _TEMPLATE]},
                "duration_seconds": {"$ref": "#/$defs/seconds"},
                "until": {**until, "description": "RFC 3339 with a zone; goes before a duration."},
            },
            [],
        ),
        "anyOf": [{"required": [key]} for key in ("duration", "duration_seconds", "until")],
    }


def _wait_for_signal() -> dict[str, Any]:
    properties = {
        "signal": _SIGNAL,
        "timeout": {
            "anyOf": [{"$ref": "#/$defs/duration"}, _NUMBER, _TEMPLATE],
            "description": "Then the node fails; 0: it waits for ever.",
        },
        "timeout_seconds": {"$ref": "#/$defs/seconds"},
        "on_timeout": {
            "enum": list(ON_TIMEOUT),
            "default": "fail",
            "description": 'continue: the node completes, its output is {"timed_out": true}.',
        },
    }
    timed: list[dict[str, Any]] = [{"required": [key]} for key in ("timeout", "timeout_seconds")]
    untimed = {"properties": {"on_timeout": {"type": "null"}}}
    return {**_object(properties, ["signal"]), "anyOf": [untimed, *timed]}


def _wait_for_event() -> dict[str, Any]:
    seconds = {"$ref": "#/$defs/seconds"}
    return _object({"event": _SIGNAL, "timeout_seconds": seconds}, ["event"])


def _http() -> dict[str, Any]:
    template = {"$ref": "#/$defs/template"}
    scalar = {"type": ["string", "number", "boolean"]}
    status = {
        "anyOf": [
            {"type": "integer", "minimum": 100, "maximum": 599},
            {"type": "string", "pattern": r"^[1-5]xx$"},
            template,
        ]
    }
    values = {"anyOf": [scalar, {"type": "array", "items": scalar}]}
    properties: dict[str, Any] = {
        "method": {"anyOf": [{"enum": list(METHODS)}, template], "default": "GET"},
        "url": {"type": "string", "pattern": r"^https?://|\{\{"},
        "headers": {"type": "object", "additionalProperties": {"type": ["string", "number"]}},
        "query": {"anyOf": [{"type": "object", "additionalProperties": values}, template]},
        "json": {},
        "body": {"type": "string"},
        "timeout": {"anyOf": [{"$ref": "#/$defs/duration"}, template]},
        "expect": {"anyOf": [status, {"type": "array", "minItems": 1, "items": status}]},
        "max_size": {
            "anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_SIZE}, template],
            "description": "Bytes of an answer's body read at most.",
        },
        "redirects": {"enum": [False, 0], "description": "Never followed."},
    }
    return _object(properties, ["url"])
