"""Durations as users write them become whole microseconds, finite and never negative."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.durations import MAX_DURATION, SECOND, microseconds, remaining
from perdure.model.errors import InvalidOptions


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (0, 0),
        (5, 5),
        (0.25, 0.25),
        (timedelta(minutes=2), 120),
        ("30s", 30),
        ("5m", 300),
        ("72h", 259_200),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("250ms", 0.25),
        ("1us", 0.000001),
        ("1h30m", 5_400),
        ("1.5h", 5_400),
        (" 30s ", 30),
        ("0s", 0),
    ],
)
def test_seconds_timedeltas_and_text_are_read(written: object, seconds: float) -> None:
    assert microseconds(written) == seconds * SECOND  # type: ignore[arg-type]


@pytest.mark.rule("D-12")
@pytest.mark.parametrize(
    "written", [10**400, 1e308, 1e300, "999999999999999999w", timedelta.max, MAX_DURATION]
)
def test_what_no_store_can_hold_is_clamped(written: object) -> None:
    assert microseconds(written) == MAX_DURATION  # type: ignore[arg-type]
    assert 2**62 + MAX_DURATION < 2**63


@pytest.mark.rule("D-12")
@pytest.mark.parametrize(
    ("written", "why"),
    [
        (-1, "negative"),
        (-0.5, "negative"),
        (timedelta(seconds=-1), "negative"),
        (-(10**400), "negative"),
        (float("nan"), "not finite"),
        (float("inf"), "not finite"),
        (True, "not a duration"),
        (None, "not a duration"),
        ([], "not a duration"),
        ("", "not a duration"),
        ("30", "not a duration"),
        ("s", "not a duration"),
        ("-5s", "not a duration"),
        ("5 s", "not a duration"),
        ("5s!", "not a duration"),
        ("5y", "not a duration"),
        ("٣s", "not a duration"),
        ("1e3s", "not a duration"),
    ],
)
def test_anything_else_is_refused_naming_the_option(written: object, why: str) -> None:
    with pytest.raises(InvalidOptions, match=rf"^timeout .*{why}"):
        microseconds(written, "timeout")  # type: ignore[arg-type]


@given(st.one_of(st.integers(), st.floats(), st.text(), st.timedeltas()))
def test_whatever_is_written_the_answer_fits_a_store_or_is_a_refusal(written: object) -> None:
    try:
        result = microseconds(written)  # type: ignore[arg-type]
    except InvalidOptions:
        return
    assert isinstance(result, int)
    assert 0 <= result <= MAX_DURATION


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 59))
def test_parts_of_a_text_add_up(hours: int, minutes: int, seconds: int) -> None:
    text = f"{hours}h{minutes}m{seconds}s"
    assert microseconds(text) == (hours * 3600 + minutes * 60 + seconds) * SECOND


def test_a_time_that_is_left_is_nothing_once_it_is_over() -> None:
    assert [remaining(left) for left in (-1, -1e-9, timedelta(days=-9), 0, "5s", 2.5)] == [
        0, 0, 0, 0, 5_000_000, 2_500_000,
    ]  # fmt: skip
    with pytest.raises(InvalidOptions, match="not finite"):
        remaining(float("-inf"))
