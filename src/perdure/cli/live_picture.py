"""A small picture at a terminal with rich, drawn anew when something changed, with lines above it.

A process killed while it draws leaves the terminal as it was: the cursor is never hidden.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from perdure.cli.output import clock
from perdure.cli.say import visible


class LivePicture(ABC):
    """On stdout, or on stderr; `rate`: drawings a second where nothing changed. Asks for its first
    drawing as it is made."""

    def __init__(self, *, stderr: bool, rate: int) -> None:
        self._console = Console(stderr=stderr)
        self._live = Live(
            console=self._console,
            get_renderable=lambda: self.drawing(self._console.height),
            refresh_per_second=rate,
            vertical_overflow="crop",
        )

    @abstractmethod
    def drawing(self, height: int) -> RenderableType:
        """The picture as it is now, for a terminal of so many lines."""

    def note(self, text: str) -> None:
        """A line above the picture."""
        self._console.print(Text(f"{clock(datetime.now(UTC))}  {visible(text)}", style="dim"))

    def __enter__(self) -> Self:
        self._live.start()
        self._console.show_cursor(True)
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()


def table_of(columns: int) -> Table:
    """An empty table, the last of its columns dim and cut where it is too long."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for _ in range(columns - 1):
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", style="dim")
    return table
