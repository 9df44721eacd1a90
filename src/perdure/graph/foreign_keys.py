"""Keys that other systems' documents have, and what says the same thing here.

Whoever comes from another system writes its words first; the nearest known key by spelling is
then no help.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perdure.model.guesses import did_you_mean

_EDGES: Final = 'what comes after what is said in "edges": {"from": …, "to": …}'
_CONDITIONS: Final = 'conditions stand on edges that leave a SWITCH: "condition": "{{ … }}"'
_SPEC: Final = 'what a node does stands in its "spec"'

#: For keys of a place that has the first of each pair.
_MEANT: Final = {
    "type": {
        **dict.fromkeys(("needs", "depends_on", "dependsOn", "next", "after", "depends"), _EDGES),
        **dict.fromkeys(("if", "when", "condition", "choices"), _CONDITIONS),
        **dict.fromkeys(("step", "input", "url", "method", "signal", "duration", "until"), _SPEC),
        **dict.fromkeys(("inputs", "parameters", "params", "args", "with"), _SPEC),
        **dict.fromkeys(("name", "key"), 'a node is known by its "id"; a title is its "label"'),
        **dict.fromkeys(("retries", "max_attempts", "attempts"), 'write "retry": {"attempts": 3}'),
    },
    "step": {
        **dict.fromkeys(("task", "function", "call", "uses", "run", "name"), "step"),
        **dict.fromkeys(("with", "args", "arguments", "params", "parameters"), "input"),
        **dict.fromkeys(("timeout", "retry", "queue"), "write it beside the spec, on the node"),
    },
    "attempts": {
        **dict.fromkeys(("max_attempts", "maxAttempts", "limit", "count", "times"), "attempts"),
        **dict.fromkeys(("delay", "interval", "wait", "backoff"), "initial"),
        **dict.fromkeys(("multiplier", "backoff_rate", "rate"), "factor"),
    },
    "condition": {
        **dict.fromkeys(("source", "start", "src"), "from"),
        **dict.fromkeys(("target", "end", "dest", "next"), "to"),
        **dict.fromkeys(("if", "when", "expression"), "condition"),
        **dict.fromkeys(("else", "otherwise"), "default"),
    },
    "nodes": {
        **dict.fromkeys(("steps", "tasks", "jobs", "states"), "nodes"),
        **dict.fromkeys(("id", "workflow"), "name"),
        **dict.fromkeys(("start", "start_at", "startAt", "entrypoint"), "entry"),
        **dict.fromkeys(("timeout", "deadline"), "max_duration"),
        **dict.fromkeys(("inputs", "params", "parameters"), "input"),
        **dict.fromkeys(("outputs", "result"), "output"),
    },
    "url": {
        **dict.fromkeys(("data", "payload"), "json"),
        **dict.fromkeys(("params", "parameters"), "query"),
        **dict.fromkeys(("verb",), "method"),
        **dict.fromkeys(("uri", "endpoint", "href"), "url"),
        **dict.fromkeys(("retry",), "write it beside the spec, on the node"),
    },
}


def meant(key: str, known: Sequence[str]) -> str:
    """What to do about an unknown key where these are known."""
    for sign, words in _MEANT.items():
        if sign in known and key in words:
            said = words[key]
            return f'did you mean "{said}"?' if said in known else said
    return did_you_mean(key, known)
