"""Measures files and functions. Small pieces are what keeps a code base easy to change."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache

from tests.tidy.tree import Source

COLUMNS = 100
FILE_LINES = {"src": 500, "tests": 600, "bench": 500, "examples": 300}
FUNCTION_LINES = 70
FUNCTION_P90 = 35


def large_files(sources: Iterable[Source], allowed: Mapping[str, str]) -> list[str]:
    """Files over the limit of their folder that are not allowed to be."""
    problems = []
    for source in sources:
        limit = FILE_LINES.get(source.path.split("/")[0], min(FILE_LINES.values()))
        if (count := len(source.lines)) > limit and source.path not in allowed:
            problems.append(f"{source.path}: {count} lines, at most {limit}: split it by idea")
    return problems


@cache
def functions(source: Source) -> list[tuple[str, int]]:
    """Every function of a file as (path:line name, lines from `def` to its end)."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (f"{source.path}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for node in ast.walk(source.tree)
        if isinstance(node, kinds)
    ]


def long_functions(sources: Iterable[Source], allowed: Mapping[str, str]) -> list[str]:
    """Functions over the limit; `allowed` names them as `path name`."""
    return [
        f"{where}: {count} lines, at most {FUNCTION_LINES}: split it"
        for source in sources
        for where, count in functions(source)
        if count > FUNCTION_LINES and f"{source.path} {where.split()[1]}" not in allowed
    ]


def percentile_90(sources: Iterable[Source]) -> int:
    """The length that nine functions of ten do not exceed."""
    lengths = sorted(count for source in sources for _, count in functions(source))
    return lengths[int(len(lengths) * 0.9)] if lengths else 0


def unneeded_exceptions(
    sources: Iterable[Source], large: Iterable[str], long: Iterable[str]
) -> list[str]:
    """Allowances that nothing needs any more: the lists may only shrink."""
    known = list(sources)
    too_large = {p.split(":")[0] for p in large_files(known, {})}
    too_long = {
        f"{p.split(':')[0]} {p.split(' ')[1].rstrip(':')}" for p in long_functions(known, {})
    }
    return sorted((set(large) - too_large) | (set(long) - too_long))


def wide_lines(path: str, text: str) -> list[str]:
    """Lines over the column limit."""
    return [
        f"{path}:{number}: {len(line)} columns, at most {COLUMNS}"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS
    ]
