"""StepContext: what is shown of it."""

from __future__ import annotations

from perdure.engine.handlers.port import Attempt
from perdure.model.step_context import StepContext


def test_whoever_prints_it_is_shown_which_attempt_it_is_and_nothing_of_what_it_was_given() -> None:
    made = StepContext(Attempt("w", "r", "pay", "TASK", "t", 1, {"token": "s3cret"}))
    assert repr(made) == "<StepContext of attempt 2 of node pay>"
    assert made.__rich_repr__() == [("node", "pay"), ("attempt", 2)]
