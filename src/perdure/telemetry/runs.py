"""Runs: one span, one count and one duration for each run, told when it has ended.

A run outlives processes, so its span is made whole at its end. Its attempts are spans of the same
trace already, and are not told again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from perdure.telemetry.outcomes import of_run

if TYPE_CHECKING:
    from perdure.telemetry.service import Telemetry

RUN: Final = "run"


def tell_run(
    telemetry: Telemetry, workflow: str, status: str, kind: str, began: datetime, ended: datetime,
    trace: Mapping[str, str] | None,
) -> None:  # fmt: skip
    """A run ended. `kind`: of its failure, "" where there is none; `trace`: its carrier."""
    outcome, error = of_run(status, kind)
    labels = {"perdure.operation": RUN, "perdure.outcome": outcome}
    if error:
        labels["error.type"] = error
    try:
        telemetry.instruments.whole(
            f"{RUN} {workflow}", trace, {"perdure.workflow": workflow, **labels}, labels,
            began, ended, failed=bool(error),
        )  # fmt: skip
    except Exception:
        telemetry.failed()
