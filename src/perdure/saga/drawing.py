"""A saga's sketch: its steps and what each waits for, for the drawings of graphs.

Each box says what undoes it; with the records of a run, how far the run came, and what of it was
undone again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from perdure.graph.draw import Sketch
from perdure.graph.draw.sketch import Box, Link, travelled
from perdure.model.graph import CHILD
from perdure.saga.record import SagaRecord, StepRecord

#: The kind of box that steps are.
_DRAWN_AS: Final = "TASK"


def sketch_of(
    record: SagaRecord, version: str, history: Iterable[Mapping[str, Any]] | None = None
) -> Sketch:
    """The sketch of a saga; with the records of a run's history, of that run."""
    links = tuple(Link(before, step.name) for step in record.steps for before in step.after)
    boxes = tuple(map(_box, record.steps))
    return travelled(Sketch(record.name, version, record.description, boxes, links), history)


def _box(step: StepRecord) -> Box:
    said = [
        f"step {step.step}" if step.step not in (None, step.name) else "",
        f"run of {step.child}" if step.child not in (None, step.name) else "",
        f"up to {step.retry.attempts}×" if step.retry.attempts > 1 else "",
        "when" if step.when else "",
        "with undo" if step.undo is not None else "",
    ]
    kind = _DRAWN_AS if step.child is None else CHILD
    return Box(step.name, kind, step.name, " · ".join(filter(None, said)) or "step")
