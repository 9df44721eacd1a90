"""Ending: the change of the run row that rides on the journal row in which a run ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from perdure.kernel.actions import FinishRun
from perdure.kernel.onward import Decided
from perdure.model.definition import Definition
from perdure.stores.rows import Finish


def finish_of(
    transitions: Sequence[Decided], payloads: Sequence[bytes], definition: Definition[Any, Any]
) -> Finish | None:
    """The Finish of these transitions, or None while the run goes on. A large output is named by
    its place among the row's payloads."""
    last = transitions[-1]
    action = last.actions[-1] if last.actions else None
    if type(action) is not FinishRun:
        return None
    purge_at = last.at + definition.retention
    failure = None if action.failure is None else msgspec.json.encode(action.failure)
    output = None if action.output is None else bytes(action.output)
    if payloads and output in payloads:
        return Finish(action.status, purge_at, None, payloads.index(output), failure)
    return Finish(action.status, purge_at, output, None, failure)
