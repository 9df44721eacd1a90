"""Files, functions and lines stay small; the exceptions are listed and may only shrink."""

from __future__ import annotations

from tests.tidy import sizes
from tests.tidy.tree import ROOT, all_sources, files, planted, sources

# path -> why it may be larger for now
LARGE_FILES: dict[str, str] = {}
# "path function" -> why it may be longer for now
LONG_FUNCTIONS: dict[str, str] = {}

# Tables, prose and recorded data are wide by nature; licences are kept as they came.
WIDE_BY_NATURE = {".md", ".txt", ".json"}


def test_no_file_is_too_large() -> None:
    assert sizes.large_files(all_sources(), LARGE_FILES) == []


def test_no_function_is_too_long() -> None:
    assert sizes.long_functions(all_sources(), LONG_FUNCTIONS) == []


def test_nine_functions_of_ten_are_short() -> None:
    assert sizes.percentile_90(sources("src")) <= sizes.FUNCTION_P90
    assert sizes.percentile_90(sources("tests")) <= sizes.FUNCTION_P90


def test_no_line_is_too_wide() -> None:
    problems = [
        problem
        for path in files()
        if path.suffix not in WIDE_BY_NATURE
        for problem in sizes.wide_lines(
            path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        )
    ]
    assert problems == []


def test_every_exception_is_still_needed() -> None:
    assert sizes.unneeded_exceptions(all_sources(), LARGE_FILES, LONG_FUNCTIONS) == []


def test_an_oversized_file_and_function_are_caught() -> None:
    body = "\n".join("    x = 1" for _ in range(501))
    source = planted(f"def f():\n{body}\n")
    assert len(sizes.large_files([source], {})) == 1
    assert len(sizes.long_functions([source], {})) == 1
    assert sizes.percentile_90([source]) == 502


def test_an_allowance_is_honoured_and_a_stale_one_is_named() -> None:
    body = "\n".join("    x = 1" for _ in range(501))
    source = planted(f"def f():\n{body}\n")
    large = {source.path: "for this test"}
    long = {f"{source.path} f": "for this test"}
    assert sizes.large_files([source], large) == []
    assert sizes.long_functions([source], long) == []
    assert sizes.unneeded_exceptions([source], large, long) == []
    assert sizes.unneeded_exceptions([planted("x = 1\n")], large, long) == sorted([*large, *long])


def test_a_wide_line_is_caught() -> None:
    assert sizes.wide_lines("a.py", "x" * 101) == ["a.py:1: 101 columns, at most 100"]
