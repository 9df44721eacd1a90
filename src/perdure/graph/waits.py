"""What the specs of waiting nodes may hold, and the older spelling of one of them.

A misspelt key would make a run wait for ever, so every key that is not known is refused. What is
written plainly is judged here by the very rules by which a run obeys it; what holds a template
is left to the run. WAIT_FOR_EVENT is a WAIT_FOR_SIGNAL whose signal is called `event`; the kernel
sees the newer spelling alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from perdure.graph.form import Form, named, templated
from perdure.kernel.plan import SpecTemplate
from perdure.kernel.wait_specs import (
    MAX_SIGNAL_NAME,
    ON_TIMEOUT,
    SIGNAL_KEYS,
    WAIT_KEYS,
    WaitSpecError,
    awaited,
    wake_time,
)

__all__ = [
    "EVENT_KEYS", "MAX_SIGNAL_NAME", "OLDER_TYPES", "ON_TIMEOUT", "SIGNAL_KEYS", "WAIT_KEYS",
]  # fmt: skip

EVENT_KEYS: Final = ("event", "timeout_seconds")
OLDER_TYPES: Final = {"WAIT_FOR_EVENT": "WAIT_FOR_SIGNAL"}


def check_wait(form: Form) -> None:
    """The spec of a WAIT."""
    form.only(WAIT_KEYS)
    if all(form.value.get(key) is None for key in WAIT_KEYS):
        form.problem(None, "nothing says how long it waits", 'write "duration": "24h"')
    _one_of(form, "duration", "duration_seconds")
    for key in WAIT_KEYS:
        value = form.value.get(key)
        if value is not None and not templated(value):
            try:
                wake_time({key: value}, 0)
            except WaitSpecError as error:
                form.problem(key, str(error), _hint(key, value))


def check_signal(form: Form) -> None:
    """The spec of a WAIT_FOR_SIGNAL."""
    form.only(SIGNAL_KEYS)
    _check_awaited(form, "signal")
    _one_of(form, "timeout", "timeout_seconds")
    said = form.value.get("on_timeout")
    if said is not None and (not isinstance(said, str) or said not in ON_TIMEOUT):
        form.problem("on_timeout", f"this must be fail or continue, not {named(said)}")
    elif said and form.value.get("timeout") is None and form.value.get("timeout_seconds") is None:
        hint = 'say how long, as in "timeout": "3d"'
        form.problem("on_timeout", "there is no timeout: it waits for ever", hint)


def check_event(form: Form) -> None:
    """The spec of a WAIT_FOR_EVENT."""
    form.only(EVENT_KEYS)
    _check_awaited(form, "event")


def _check_awaited(form: Form, name_key: str) -> None:
    form.required(name_key, f'"{name_key}": "approved"')
    for key in (name_key, "timeout", "timeout_seconds"):
        value = form.value.get(key)
        if value is None or templated(value):
            continue
        try:
            awaited({"signal": value} if key == name_key else {"signal": "x", key: value}, 0)
        except WaitSpecError as error:
            message = str(error).replace("signal must be", f"{key} must be")
            form.problem(key, message, _hint(key, value))


def _hint(key: str, value: Any) -> str:
    if key.endswith("_seconds"):
        return f'write seconds, or "{key.removesuffix("_seconds")}": "24h"'
    if key in ("duration", "timeout"):
        return "" if isinstance(value, str) else 'write text, such as "24h"'
    return "write a day and a time that exist" if key == "until" else 'write text, as in "approved"'


def _one_of(form: Form, key: str, other: str) -> None:
    if form.value.get(key) is not None and form.value.get(other) is not None:
        form.problem(other, f'"{key}" and "{other}" both say how long', "take one out")


def stated(spec: Any) -> Any:
    """A spec of a wait, or of a CHILD, without the keys whose value is null: in a document those
    are absent, while a template that gives null fails the node (D-12)."""
    if not isinstance(spec, dict):
        return spec
    return {key: value for key, value in spec.items() if value is not None}


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
