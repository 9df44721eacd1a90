"""The cases of a select: what each waits for, and which is answered already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from perdure.flow.signal import Mailbox, Signal, Then, Time
from perdure.model.errors import InvalidRequest, NoCases


class Known(msgspec.Struct):
    """The value of a case that is answered."""

    value: Any


def taken(case: Any) -> tuple[Mailbox[Any] | None, datetime | timedelta | None]:
    """What a case waits for: a mailbox, or a time. Raises InvalidRequest."""
    if isinstance(case, Mailbox):
        return case, None
    if isinstance(case, Then):
        return case.source, None
    if isinstance(case, Time):
        return None, case.at if case.at is not None else timedelta(microseconds=case.delay)
    raise InvalidRequest(
        f"{case!r} is no case of a select: use a Signal, a Channel, On(…) or After(…)"
    )


def first_of(cases: Sequence[Any], facts: Mapping[str, Any]) -> Known | None:
    """The first case whose signal has spoken before, with its value. Raises NoCases."""
    if not cases:
        raise NoCases("select needs something to wait for: give it at least one case")
    for case in cases:
        source, _ = taken(case)
        if isinstance(source, Signal) and source.name in facts:
            value = facts[source.name]
            then = case.then if isinstance(case, Then) else None
            return Known(value if then is None else then(value))
    return None
