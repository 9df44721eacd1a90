"""What the specs of waiting nodes may hold, and the older spelling of one of them.

A misspelt key would make a run wait for ever, so every key that is not known is refused, here and
again when a run resolves the spec. WAIT_FOR_EVENT is a WAIT_FOR_SIGNAL whose signal is called
`event`; the kernel sees the newer spelling alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from perdure.expr.errors import Fault
from perdure.expr.times import parse_timestamp
from perdure.graph.form import Form, named, templated
from perdure.kernel.plan import SpecTemplate

WAIT_KEYS: Final = ("duration", "duration_seconds", "until")
SIGNAL_KEYS: Final = ("signal", "timeout", "timeout_seconds")
EVENT_KEYS: Final = ("event", "timeout_seconds")
OLDER_TYPES: Final = {"WAIT_FOR_EVENT": "WAIT_FOR_SIGNAL"}
MAX_SIGNAL_NAME: Final = 256
#: A number in text, as `"{{input.delay}}"` may give one.
NUMBER_TEXT: Final = r"^\s*\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"

_NUMBER: Final = re.compile(NUMBER_TEXT, re.ASCII)


def check_wait(form: Form) -> None:
    """The spec of a WAIT."""
    form.only(WAIT_KEYS)
    _one_of(form, "duration", "duration_seconds")
    if all(form.value.get(key) is None for key in WAIT_KEYS):
        form.problem(None, "nothing says how long it waits", 'write "duration": "24h"')
    _duration(form, "duration")
    _seconds(form, "duration_seconds")
    until = form.typed("until", str, 'write a time, such as "2030-01-31T12:00:00Z"')
    if until is not None and not templated(until):
        try:
            parse_timestamp(until)
        except Fault as fault:
            hint = 'write RFC 3339 with a zone, such as "2030-01-31T12:00:00Z"'
            form.problem("until", f"{named(until)} is no time: {fault}", hint)


def check_signal(form: Form) -> None:
    """The spec of a WAIT_FOR_SIGNAL."""
    form.only(SIGNAL_KEYS)
    _signal_name(form, "signal")
    _one_of(form, "timeout", "timeout_seconds")
    _duration(form, "timeout")
    _seconds(form, "timeout_seconds")


def check_event(form: Form) -> None:
    """The spec of a WAIT_FOR_EVENT."""
    form.only(EVENT_KEYS)
    _signal_name(form, "event")
    _seconds(form, "timeout_seconds")


def _signal_name(form: Form, key: str) -> None:
    if not form.required(key, f'"{key}": "approved"'):
        return
    name = form.typed(key, str, "write the name of a signal")
    if name is None or templated(name):
        return
    if not name:
        form.problem(key, "a signal has a name", f'write "{key}": "approved"')
    elif len(name) > MAX_SIGNAL_NAME:
        wrong = f"this name has {len(name)} characters"
        form.problem(key, wrong, f"use at most {MAX_SIGNAL_NAME}")


def _one_of(form: Form, key: str, other: str) -> None:
    if form.value.get(key) is not None and form.value.get(other) is not None:
        form.problem(other, f'"{key}" and "{other}" both say how long', "take one out")


def _duration(form: Form, key: str) -> None:
    if not templated(form.value.get(key)):
        form.duration(key)


def _seconds(form: Form, key: str) -> None:
    """A number of seconds, or text that is one; units belong to the other key."""
    value = form.value.get(key)
    if value is None or templated(value):
        return
    if isinstance(value, str):
        number = float(value) if _NUMBER.match(value) else math.nan
    else:
        number = math.nan if isinstance(value, bool | dict | list) else value
    if not math.isfinite(number) or number < 0:
        plain = key.removesuffix("_seconds")
        hint = f'write a number of seconds from 0, or "{plain}": "24h"'
        form.problem(key, f"{named(value)} must be a non-negative number", hint)


def is_bounded(spec: Any) -> bool:
    """Whether a wait for a signal may end by itself, as far as its text tells."""
    if not isinstance(spec, dict):
        return True  # a whole template: nobody knows yet
    said = [spec.get("timeout"), spec.get("timeout_seconds")]
    return any(value is not None and not _is_zero(value) for value in said)


def _is_zero(value: Any) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"\s*[0.]+[a-z]*\s*", value) is not None
    return bool(value == 0)


class EventSpec(msgspec.Struct, frozen=True):
    """The spec of a WAIT_FOR_EVENT, rendered as that of a WAIT_FOR_SIGNAL."""

    spec: SpecTemplate

    @property
    def constant(self) -> bool:
        """As the spec's own."""
        return self.spec.constant

    @property
    def secrets(self) -> Mapping[str, str]:
        """None: waits read no secrets."""
        return {}

    def render(self, scope: Mapping[str, Any], /) -> Any:
        """The value with `event` called `signal`."""
        value = self.spec.render(scope)
        if not isinstance(value, dict) or "event" not in value:
            return value
        return {"signal" if key == "event" else key: member for key, member in value.items()}
