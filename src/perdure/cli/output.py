"""What commands print: JSON on stdout, everything for people's eyes in one style.

Tables are drawn with rich where it is installed and stdout is a terminal, else as plain columns.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Final

from perdure.cli.say import json_text, on_one_line, say, visible

if TYPE_CHECKING:
    from perdure.client.run_info import RunInfo
    from perdure.model.errors import Failure


#: Times of this year cannot be moved to every zone.
_LAST_YEAR: Final = 9999


def print_json(value: Any) -> None:
    """One JSON document on stdout: on one line for programs, indented at a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    say(json_text(value, indent, _json))


def line_to(file: IO[str]) -> Callable[[Any], None]:
    """What writes JSON values to a file, a line each, at once. Nobody may read it any more: the
    work goes on."""

    def write(value: Any) -> None:
        with contextlib.suppress(OSError, ValueError):
            print(json_text(value, default=_json), file=file, flush=True)

    return write


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return instant(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def instant(time: datetime) -> str:
    """A time for programs: RFC 3339, UTC, to the millisecond."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(time: datetime) -> str:
    """A time of today for people: local, 12:00:01."""
    return time.astimezone().strftime("%H:%M:%S")


def moment(time: datetime | None) -> str:
    """A time for people: local, 2026-01-31 12:00:01; - when there is none."""
    return "-" if time is None else time.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def moment_near(time: datetime) -> str:
    """A time for people, local: 12:00:01 if that is today, else with its date."""
    local = time if time.year == _LAST_YEAR else time.astimezone()
    if local.date() == datetime.now(UTC).astimezone().date():
        return local.strftime("%H:%M:%S")
    return local.strftime("%Y-%m-%d %H:%M:%S")


def took(seconds: float) -> str:
    """A length of time for people: 0.31 s, 12 s, 3 m 05 s, 2 h 07 m, 9 d 04 h."""
    if seconds < 10:
        return f"{max(0.0, seconds):.2f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} m"
    return f"{hours // 24} d {hours % 24:02d} h"


def shortened(value: Any, columns: int = 100) -> str:
    """A JSON value on one line of at most so many characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = visible(" ".join(text.split()))
    return text if len(text) <= columns else text[: columns - 1] + "…"


def run_json(info: RunInfo) -> dict[str, Any]:
    """A run for programs."""
    return {
        "workflow": info.workflow,
        "id": info.id,
        "version": info.version,
        "status": info.status,
        "stalled": info.stalled,
        "created": instant(info.created),
        "finished": None if info.finished is None else instant(info.finished),
        "metadata": dict(info.metadata),
        "failure": None if info.failure is None else failure_json(info.failure),
    }


def failure_json(failure: Failure) -> dict[str, Any]:
    """A failure for programs."""
    return {"kind": failure.kind, "message": failure.message, "details": failure.details}


def has_rich() -> bool:
    """Whether the extra `cli` is installed."""
    try:
        return importlib.util.find_spec("rich") is not None
    except ValueError:
        return False


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under a head, on stdout."""
    rows = [[on_one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty() and has_rich():
        _rich_table(head, rows)
        return
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())


def _rich_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for title in head:
        drawn.add_column(title, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    Console().print(drawn)


#: How a status looks at a terminal.
COLOURS = {
    "completed": "green", "failed": "red", "running": "cyan", "pending": "cyan", "canceled":
    "yellow", "skipped": "dim", "stalled": "yellow", "waiting": "magenta", "compensated": "yellow",
    "done": "green", "retrying": "yellow",
}  # fmt: skip
