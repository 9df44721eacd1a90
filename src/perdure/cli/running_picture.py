"""Running runs as a small live picture, at a terminal with rich: a line for each, a sign for each
of its steps. Those that ended stay for a moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.text import Text

from perdure.cli.live_picture import LivePicture, table_of
from perdure.cli.output import COLOURS, took
from perdure.cli.running_lines import standing
from perdure.cli.say import on_one_line, visible

if TYPE_CHECKING:
    from perdure.cli.running import Seen
    from perdure.feed.view import RunView

#: Seconds for which a run that ended is drawn.
LINGER: Final = 5.0
#: Steps that have a sign of their own; of more, those around what is under way.
SIGNED: Final = 24
_SIGNS: Final = {
    "done": "✓", "failed": "✗", "skipped": "·", "running": "▸", "waiting": "◦", "retrying": "↻",
    "canceled": "✗", "compensated": "↶", "pending": "·",
}  # fmt: skip


class RunningPicture(LivePicture):
    """A table on stdout, drawn anew when something changed."""

    def __init__(self) -> None:
        self._runs: list[Seen] = []
        self._ended: list[tuple[datetime, Seen]] = []
        self._more = 0
        super().__init__(stderr=False, rate=4)

    def show(self, runs: Sequence[Seen], more: int) -> None:
        """See Board.show."""
        now = datetime.now(UTC)
        self._ended = [one for one in self._ended if (now - one[0]).total_seconds() < LINGER]
        self._ended += [(now, seen) for seen in runs if seen.view.outcome]
        self._runs = [seen for seen in runs if not seen.view.outcome]
        self._more = more
        self._live.refresh()

    def drawing(self, height: int) -> RenderableType:
        """The picture as it is now, for a terminal of so many lines."""
        now = datetime.now(UTC)
        all = [*(seen for _, seen in self._ended), *self._runs]
        room = max(height - 3, 3)
        shown = all[-room:]
        table = table_of(4)
        for seen in shown:
            table.add_row(*_row(seen, now))
        more = self._more + len(all) - len(shown)
        if not all:
            return Text("nothing is running", style="dim")
        return Group(table, Text(f"… and {more} more", style="dim")) if more else table


def _row(seen: Seen, now: datetime) -> tuple[Text, ...]:
    view = seen.view
    length = (
        "" if view.started is None else took(((view.ended or now) - view.started).total_seconds())
    )
    if view.outcome:
        how = Text(view.outcome, style=COLOURS.get(view.outcome, ""))
    elif seen.stalled:
        how = Text(f"cannot go on: {on_one_line(seen.stalled)}", style=COLOURS["stalled"])
    else:
        how = Text(standing(view, now))
    return Text(visible(f"{view.workflow}/{view.id}")), signs(view, now), Text(length), how


def signs(view: RunView, now: datetime) -> Text:
    """A sign for each step, in the plan's order."""
    states = [step["state"] for step in view.to_dict(now)["steps"]]
    begun = max((i for i, state in enumerate(states) if state != "pending"), default=0)
    first = min(max(begun - SIGNED // 2, 0), max(len(states) - SIGNED, 0))
    text = Text("…" if first else "")
    for state in states[first : first + SIGNED]:
        text.append(_SIGNS.get(state, "?"), style=COLOURS.get(state, "dim"))
    return text.append("…" if first + SIGNED < len(states) else "")
