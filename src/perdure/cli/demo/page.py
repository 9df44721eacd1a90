"""Where the demo writes: lines that fold and tables that fit, for any width.

With rich, if it is installed; else plain text, which says the same.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TextIO, TypeAlias

import click

from perdure.cli.output import has_rich

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Style: TypeAlias = Literal["", "bold", "dim", "green", "yellow", "red", "cyan"]
Span: TypeAlias = tuple[str, Style]
#: Longer lines are hard to read, however wide the terminal is.
WIDEST: Final = 100
#: Where there is no terminal.
USUAL: Final = 88
#: Columns of a table never get narrower than this.
NARROWEST: Final = 8


class Page(Protocol):
    """`hang`: how much further in the second and later lines of a folded line begin."""

    def line(self, *spans: Span, indent: int = 0, hang: int = 0) -> None: ...

    def table(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[Style]
    ) -> None: ...

    def whole(self, text: str) -> None:
        """A line that is never folded: somebody may want to copy it."""


def page_for(stream: TextIO | None = None) -> Page:
    """The page for a stream, stdout unless said."""
    stream = stream or sys.stdout
    terminal = stream.isatty()
    width = min(shutil.get_terminal_size((USUAL, 24)).columns if terminal else USUAL, WIDEST)
    if terminal and has_rich():
        from rich.console import Console

        return RichPage(Console(file=stream, width=width, highlight=False, markup=False))
    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return PlainPage(stream, width, coloured=coloured)


class PlainPage:
    """Text, folded at words; colours only where a terminal wants them."""

    def __init__(self, stream: TextIO, width: int, *, coloured: bool = False) -> None:
        self._stream = stream
        self._width = width
        self._coloured = coloured

    def line(self, *spans: Span, indent: int = 0, hang: int = 0) -> None:
        """One line, or several where it does not fit."""
        text = " " * indent + "".join(text for text, _ in spans)
        if len(text) <= self._width:
            whole = " " * indent + "".join(self._styled(*span) for span in spans)
            self._put(whole if self._coloured else whole.rstrip())
            return
        lead = len(text) - len(text.lstrip())
        for part in fold(text.strip(), self._width, lead, indent + hang - lead):
            self._put(self._styled(part, spans[0][1] if len(spans) == 1 else ""))

    def table(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[Style]
    ) -> None:
        """Rows under a head; cells fold within their columns."""
        indent, gap = 3, 2
        widths = fitting(head, rows, self._width - indent - gap * (len(head) - 1))
        every: list[tuple[Sequence[str], Style]] = [(head, "dim")]
        every += zip(rows, styles, strict=True)
        for row, style in every:
            cells = [textwrap.wrap(c, w) or [""] for c, w in zip(row, widths, strict=True)]
            for number in range(max(map(len, cells))):
                parts = [cell[number] if number < len(cell) else "" for cell in cells]
                joined = (" " * gap).join(p.ljust(w) for p, w in zip(parts, widths, strict=True))
                self._put(" " * indent + self._styled(joined.rstrip(), style))

    def whole(self, text: str) -> None:
        """A line that is never folded."""
        self._put(text)

    def _styled(self, text: str, style: Style) -> str:
        if not self._coloured or not style:
            return text
        if style in ("bold", "dim"):
            return click.style(text, bold=style == "bold" or None, dim=style == "dim" or None)
        return click.style(text, fg=style)

    def _put(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class RichPage:
    """The same with rich, which knows what the terminal can do."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, *spans: Span, indent: int = 0, hang: int = 0) -> None:
        """One line, or several where it does not fit."""
        from rich.padding import Padding

        if not any(text for text, _ in spans):
            self._console.print()
            return
        text = self._text(*spans)
        width = self._console.width - indent
        if text.cell_len <= width:
            self._console.print(Padding(text, (0, 0, 0, indent), expand=False))
            return
        first, *rest = text.wrap(self._console, width)
        again = text[len(first.plain) :]
        again.remove_suffix("\n")
        self._console.print(Padding(first, (0, 0, 0, indent), expand=False))
        if rest:
            left = self._text((again.plain.lstrip(), spans[-1][1]))
            self._console.print(Padding(left, (0, 0, 0, indent + hang), expand=False))

    def table(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[Style]
    ) -> None:
        """Rows under a head; cells fold within their columns."""
        from rich.padding import Padding
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for title in head:
            table.add_column(title, overflow="fold")
        for row, style in zip(rows, styles, strict=True):
            table.add_row(*(self._text((cell, style)) for cell in row))
        self._console.print(Padding(table, (0, 0, 0, 3), expand=False))

    def whole(self, text: str) -> None:
        """A line that is never folded."""
        self._console.print(self._text((text, "")), soft_wrap=True)

    def _text(self, *spans: Span) -> Text:
        from rich.text import Text

        pieces: list[Any] = [(text, style) if style else text for text, style in spans]
        return Text.assemble(*pieces)


def fold(text: str, width: int, indent: int, hang: int) -> list[str]:
    """Text as lines of at most so many signs; words longer than a line stay whole."""
    return textwrap.wrap(
        text, max(width, indent + hang + 10), initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang), break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def fitting(head: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths of columns within this room: the widest give way until all fits."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    while sum(widths) > room:
        widest = widths.index(max(widths))
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
    return widths
