"""Running runs as lines on stdout: for people without a terminal, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from perdure.cli.output import clock, shortened, took
from perdure.cli.say import json_text, say

if TYPE_CHECKING:
    from perdure.cli.running import Seen
    from perdure.feed.view import RunView


def _now() -> datetime:
    return datetime.now(UTC)


class _Printed:
    """What both have in common: what is said beside the runs goes to stderr."""

    def note(self, text: str) -> None:
        """See Board.note."""
        say(f"perdure: {text}", err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


class Frames(_Printed):
    """A JSON document on a line for each run, as it is found and whenever it changed."""

    def show(self, runs: Sequence[Seen], more: int) -> None:
        """See Board.show."""
        now = datetime.now(UTC)
        for seen in runs:
            if seen.changed:
                say(json_text(seen.view.to_dict(now)))


class RunningLines(_Printed):
    """`12:00:01  checkout/1  charge  retrying (attempt 2): timeout`, one for each change."""

    def __init__(self, now: Callable[[], datetime] = _now) -> None:
        self._now = now
        #: What was said of the steps of a run.
        self._said: dict[str, dict[str, str]] = {}
        self._more = 0

    def show(self, runs: Sequence[Seen], more: int) -> None:
        """See Board.show."""
        now = self._now()
        for seen in runs:
            name = f"{seen.view.workflow}/{seen.view.id}"
            for text in self._changes(name, seen, now):
                say(f"{clock(now)}  {name}  {text}")
            if seen.view.outcome:
                self._said.pop(name, None)
        if more != self._more:
            self._more = more
            if more:
                self.note(f"and {more} more are running that are not shown")

    def _changes(self, name: str, seen: Seen, now: datetime) -> Iterator[str]:
        said, view = self._said.setdefault(name, {}), seen.view
        if seen.new:
            yield f"is running: {standing(view, now)}"
        for step, text in _steps(view, now):
            if said.get(step, text if seen.new else "pending") != text:
                yield f"{step}  {text}"
            said[step] = text
        stalled = seen.stalled or ""
        if stalled != said.get("", ""):
            yield f"cannot go on: {stalled}" if stalled else "goes on"
        said[""] = stalled
        if view.outcome:
            yield f"{view.outcome}{_length(view)}"


def standing(view: RunView, now: datetime) -> str:
    """How a run stands, in few words: "2 of 5 done; charge retrying (attempt 2): timeout"."""
    told = _steps(view, now)
    done = sum(1 for _, text in told if text.startswith(("done", "skipped", "compensated")))
    doing = [f"{step} {text}" for step, text in told if text.startswith(_DOING)]
    if not doing:
        doing = [f"{step} {text}" for step, text in told if text.startswith("failed")][-1:]
    count = f"{done} of {len(view.steps)} done"
    if view.undoing:
        count = "undoing"
    more = f" and {len(doing) - 2} more" if len(doing) > 2 else ""
    paused = "paused; " if view.paused else ""
    return paused + "; ".join(filter(None, (count, ", ".join(doing[:2]) + more)))


_DOING = ("running", "retrying", "waiting")


def _steps(view: RunView, now: datetime) -> list[tuple[str, str]]:
    """The steps with what is to be said of each, undos after theirs."""
    said = []
    for step in view.to_dict(now)["steps"]:
        said.append((step["name"], _text(step)))
        if "undo" in step:
            said.append((f"{step['name']}~undo", _text(step["undo"])))
    return said


def _text(step: dict[str, Any]) -> str:
    attempt = f" (attempt {step['attempt']})" if step.get("attempt", 0) > 1 else ""
    error = f": {shortened(step['error'])}" if "error" in step else ""
    return f"{step['state']}{attempt}{error}"


def _length(view: RunView) -> str:
    if view.started is None or view.ended is None:
        return ""
    return f" (after {took((view.ended - view.started).total_seconds())})"
