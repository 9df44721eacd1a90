"""Figures as a table for people, and as JSON for programs."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence

import msgspec

from bench.figures import Figure

_HEADS = ("", "case", "figure", "µs each", "ceiling", "ratio", "budget", "")


def table(figures: Sequence[Figure]) -> str:
    """One line a figure, and below it what the ceilings are."""
    rows = [_HEADS, *(_cells(figure) for figure in figures)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEADS))]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths).rstrip())
    ceilings = {f.ceiling_is: f for f in figures if f.ceiling_is}
    lines += ["", *(f"ceiling: {text}" for text in ceilings)]
    lines += [f"{f.workload} {f.case}: {f.note}" for f in figures if f.note]
    return "\n".join(lines)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Words to the left, numbers to the right."""
    words = {0, 1, 6, 7}
    return [
        cell.ljust(width) if at in words else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _cells(figure: Figure) -> tuple[str, ...]:
    a_second = figure.unit.endswith("s/s")
    return (
        figure.workload,
        figure.case,
        f"{_number(figure.value)} {figure.unit}",
        _number(1e6 / figure.value) if a_second and figure.value else "",
        "" if figure.ceiling is None else _number(figure.ceiling),
        "" if figure.ratio is None else f"{figure.ratio:.0%}",
        figure.budget,
        {True: "met", False: "MISSED", None: ""}[figure.met],
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def as_json(figures: Sequence[Figure]) -> bytes:
    """Everything, with what the machine was."""
    return msgspec.json.format(
        msgspec.json.encode(
            {
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "python": platform.python_version(),
                "machine": platform.machine(),
                "processors": os.cpu_count(),
                "figures": figures,
            }
        )
    )
