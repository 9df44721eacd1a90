"""Check: one thing that was looked at, and what to do where it is not well."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """`topic` names what was looked at and is stable; `advice`: what to do, "" where nothing."""

    topic: str
    level: Level
    text: str
    advice: str = ""


def ok(topic: str, text: str) -> Check:
    """All is well."""
    return Check(topic, "ok", text)


def warn(topic: str, text: str, advice: str) -> Check:
    """It works, and may hurt."""
    return Check(topic, "warn", text, advice)


def fail(topic: str, text: str, advice: str) -> Check:
    """It does not work."""
    return Check(topic, "fail", text, advice)
