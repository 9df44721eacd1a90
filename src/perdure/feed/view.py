"""RunView: how the steps of one run stand, for people and dashboards.

Told from the feed while it happens (`LiveView`), or from a journal by any process (`Run.view`).
Every step of the plan is there from the first moment. Values are not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from perdure.kernel.plan import UNDO
from perdure.kernel.run import GRACE
from perdure.model.errors import Canceled

#: What started a run of which nothing is said.
BY_HAND: Final = "start"

PENDING: Final = "pending"
RUNNING: Final = "running"
WAITING: Final = "waiting"
RETRYING: Final = "retrying"
DONE: Final = "done"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
CANCELED: Final = "canceled"
COMPENSATED: Final = "compensated"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
#: Of a step that is under way: none is when the run has ended.
_MOVING: Final = frozenset({RUNNING, WAITING, RETRYING})


def trigger_of(metadata: Mapping[str, str]) -> str:
    """What started a run: `trigger` of its metadata, which an emitted event has, else "start"."""
    return metadata.get("trigger") or BY_HAND


class StepView(msgspec.Struct):
    """A step, or its undo. `state`: "pending", "running", "done", "failed", "retrying" (an attempt
    failed, and another one is to come), "compensated" (done, and undone), "waiting" (for a time or
    a signal), "skipped", "canceled". `attempt`: the one under way, the next or the last; 0 = none
    so far. `error`: why the last one failed, unless a later one did not. `started`, `ended`: of the
    step as a whole, aware, UTC. `undo`: how its undo stands, once that has begun."""

    name: str
    state: str = PENDING
    attempt: int = 0
    error: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    undo: StepView | None = None
    #: When the next attempt is to begin, where nobody tells that it did.
    due: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """How long it took, waits between attempts included; None while it has not ended."""
        if self.started is None or self.ended is None:
            return None
        return max((self.ended - self.started).total_seconds(), 0.0)

    def at(self, now: datetime) -> str:
        """Its state at this time: an attempt that is due by then is taken to have begun."""
        return RUNNING if self.due is not None and self.due <= now else self.state

    def copied(self) -> StepView:
        """A copy with a copy of its undo."""
        made = copy(self)
        if made.undo is not None:
            made.undo = copy(made.undo)
        return made

    def to_dict(self, now: datetime) -> dict[str, Any]:
        """The step in the document of its run."""
        state = self.at(now)
        told: dict[str, Any] = {"name": self.name, "state": state}
        if self.attempt > 1 or (self.attempt and state in (RETRYING, FAILED)):
            told["attempt"] = self.attempt
        if self.error and state in (RETRYING, FAILED, CANCELED):
            told["error"] = self.error
        if self.seconds is not None and state not in _MOVING:
            told["duration_ms"] = round(self.seconds * 1000, 3)
        if self.undo is not None and state != COMPENSATED:
            told["undo"] = self.undo.to_dict(now)
            del told["undo"]["name"]
        return told


class RunView(msgspec.Struct):
    """A run. `steps` by name, in the plan's order; of code, which has none, its calls in the order
    in which they were made. `trigger`: what started it. `outcome`: "" until it ended, then
    "completed", "failed" or "canceled". Times are aware, UTC."""

    workflow: str
    id: str
    trigger: str = BY_HAND
    version: str = ""
    steps: dict[str, StepView] = {}
    started: datetime | None = None
    ended: datetime | None = None
    outcome: str = ""
    #: Whether what it did is being undone; whether no attempt begins.
    undoing: bool = False
    paused: bool = False

    def to_dict(self, now: datetime | None = None) -> dict[str, Any]:
        """The run as JSON's types: `execution_id`, `workflow`, `trigger` and `steps`, each with
        `name` and `state`, and where there is one `attempt`, `error`, `duration_ms`, `undo`; and
        `outcome` once it has ended. `now`: when this is, by default now."""
        now = _LONG_AGO if self.paused else now or datetime.now(UTC)
        told: dict[str, Any] = {
            "execution_id": self.id,
            "workflow": self.workflow,
            "trigger": self.trigger,
            "steps": [step.to_dict(now) for step in self.steps.values()],
        }
        if self.outcome:
            told["outcome"] = self.outcome
        return told

    def copied(self) -> RunView:
        """A copy that shares nothing with this view."""
        made = copy(self)
        made.steps = {name: step.copied() for name, step in self.steps.items()}
        return made

    # ------------------------------------------------------------------ what happens

    def plan(self, names: Sequence[str]) -> None:
        """Its steps, before any of them began."""
        self.steps = {name: StepView(name) for name in names}

    def step(self, node: str) -> StepView:
        """The step of a node, or the undo of one; a new one where it was not planned."""
        name = node.removesuffix(UNDO)
        step = self.steps.get(name)
        if step is None:
            step = self.steps[name] = StepView(name)
        if name == node:
            return step
        if step.undo is None:
            step.undo = StepView(node)
        return step.undo

    def begun(self, node: str, attempt: int, time: datetime, due: datetime | None = None) -> None:
        """An attempt begins; or, if that is later, when it is `due`."""
        step = self.step(node)
        if step.state not in _MOVING:  # it may have been here before, in an earlier life
            step.started, step.error = due or time, ""
        step.state, step.due = (PENDING, due) if due is not None else (RUNNING, None)
        step.attempt, step.ended = attempt, None

    def waits(self, node: str, time: datetime) -> None:
        """It waits for a time or a signal."""
        if node != GRACE:
            step = self.step(node)
            step.state, step.started, step.ended, step.error = WAITING, time, None, ""

    def retries(self, node: str, attempt: int, error: str, due: datetime | None) -> None:
        """This attempt is the next. `due`: when, where nobody tells that it begins."""
        step = self.step(node)
        step.state, step.attempt, step.error, step.due = RETRYING, attempt, error, due

    def done(self, node: str, time: datetime) -> None:
        """It ended well; an undo that did makes its step compensated."""
        self._over(node, DONE, time)
        if node.endswith(UNDO):
            self.step(node.removesuffix(UNDO)).state = COMPENSATED

    def fails(self, node: str, kind: str, error: str, time: datetime) -> None:
        """It failed for good, or was given up."""
        if node != GRACE:
            self._over(node, CANCELED if kind == Canceled.kind else FAILED, time, error)

    def skips(self, node: str) -> None:
        """It is passed over."""
        self.step(node).state = SKIPPED

    def pauses(self, time: datetime) -> None:
        """No attempt begins from now on."""
        for step in self.steps.values():
            for one in (step, step.undo):
                if one is not None and one.due is not None and one.due <= time:
                    one.state, one.due = RUNNING, None
        self.paused = True

    def unpauses(self, time: datetime) -> None:
        """It goes on: what became due meanwhile begins now."""
        for step in self.steps.values():
            for one in (step, step.undo):
                if one is not None and one.due is not None and one.due <= time:
                    one.started = time if one.state == PENDING else one.started
                    one.state, one.due = RUNNING, None
        self.paused = False

    def ends(self, outcome: str, time: datetime) -> None:
        """The run ended: nothing is under way any more."""
        self.outcome, self.ended, self.undoing = outcome, time, False
        for step in self.steps.values():
            if step.undo is not None and step.undo.state in (PENDING, *_MOVING):
                step.undo = None
            if step.state in _MOVING or step.due is not None:
                self._over(step.name, CANCELED, time)

    def reopens(self, version: str, again: Collection[str], plan: Sequence[str]) -> None:
        """It goes on after its end, on this version and by its plan: these steps are as if they
        had never begun, the others as they were, and nothing of them is undone any more."""
        self.outcome, self.ended, self.undoing, self.version = "", None, False, version
        anew = frozenset(again)
        kept = {name: step for name, step in self.steps.items() if name not in anew}
        self.steps = {name: kept.get(name) or StepView(name) for name in plan or self.steps}
        for step in self.steps.values():
            step.undo = None

    def _over(self, node: str, state: str, time: datetime, error: str = "") -> None:
        if node == GRACE:
            return
        step = self.step(node)
        step.state, step.ended, step.error, step.due = state, time, error, None
        if step.started is None:
            step.started = time
