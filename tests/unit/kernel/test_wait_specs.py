"""What a wait's spec may say: strictly, so that no wait is misread."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from perdure.kernel.wait_specs import WaitSpecError, awaited, wake_time
from perdure.model.durations import MAX_DURATION, SECOND
from tests.unit.kernel.harness import NEW_YEAR as NOW

HOUR = 3600 * SECOND


def micros(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.replace(microsecond=0).timestamp()) * SECOND + moment.microsecond


def wait_error(spec: Any) -> str:
    with pytest.raises(WaitSpecError) as error:
        wake_time(spec, NOW)
    return str(error.value)


def signal_error(spec: Any) -> str:
    with pytest.raises(WaitSpecError) as error:
        awaited(spec, NOW)
    return str(error.value)


@pytest.mark.rule("G-75", "D-12")
@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({"duration_seconds": 0}, 0),
        ({"duration_seconds": 90}, 90),
        ({"duration_seconds": 1.25}, 1.25),
        ({"duration_seconds": "90"}, 90),
        ({"duration_seconds": " 1.5e2 "}, 150),
        ({"duration_seconds": ".5"}, 0.5),
        ({"duration_seconds": -0.0}, 0),
        ({"duration": 90}, 90),
        ({"duration": "90"}, 90),
        ({"duration": "1h30m"}, 5400),
        ({"duration": "250ms"}, 0.25),
        ({"duration": "5400s"}, 5400),  # how a CEL duration is written
    ],
)
def test_durations_are_numbers_numeric_text_or_text_with_units(spec: Any, seconds: float) -> None:
    assert wake_time(spec, NOW) == NOW + round(seconds * SECOND)


@pytest.mark.rule("G-75", "D-12")
@pytest.mark.parametrize(
    "value",
    [-1, "-0.5", "soon", "", "1_000", "0x10", "nan", "inf", "1e999", "90s", None, True, [], {}],
)
def test_seconds_that_are_no_non_negative_number_are_errors(value: Any) -> None:
    assert "duration_seconds must be a non-negative number" in wait_error(
        {"duration_seconds": value}
    )
    assert "timeout_seconds must be a non-negative number" in signal_error(
        {"signal": "go", "timeout_seconds": value}
    )


@pytest.mark.rule("D-12")
@pytest.mark.parametrize("value", [-1, "-5", "soon", "", "-1h", "1x", None, False, [1]])
def test_durations_that_are_none_are_errors_naming_the_key(value: Any) -> None:
    assert "duration" in wait_error({"duration": value})
    assert "timeout" in signal_error({"signal": "go", "timeout": value})


@pytest.mark.rule("D-12")
@pytest.mark.parametrize("value", [1e300, "1e300", 10**40, "9" * 30])
def test_a_duration_longer_than_stores_can_hold_is_clamped(value: Any) -> None:
    # scenario 71
    assert wake_time({"duration_seconds": value}, NOW) == NOW + MAX_DURATION
    assert awaited({"signal": "go", "timeout": value}, NOW) == ("go", NOW + MAX_DURATION)


@pytest.mark.rule("G-74")
@pytest.mark.parametrize(
    ("until", "means"),
    [
        ("2025-06-01T12:00:00Z", "2025-06-01T12:00:00+00:00"),
        ("2025-06-01t12:00:00z", "2025-06-01T12:00:00+00:00"),
        ("2025-06-01 12:00:00Z", "2025-06-01T12:00:00+00:00"),
        ("2025-06-01T12:00:00+05:30", "2025-06-01T06:30:00+00:00"),
        ("2025-06-01T12:00:00-08:00", "2025-06-01T20:00:00+00:00"),
        ("2025-06-01T12:00:00.25Z", "2025-06-01T12:00:00.250000+00:00"),
        ("2025-06-01T12:00:00.123456Z", "2025-06-01T12:00:00.123456+00:00"),
        ("2025-06-01T12:00:00.123456000Z", "2025-06-01T12:00:00.123456+00:00"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000+00:00"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59+00:00"),
    ],
)
def test_until_is_a_time_with_its_zone(until: str, means: str) -> None:
    # scenario 67: normalised to UTC once
    assert wake_time({"until": until}, NOW) == micros(means)


@pytest.mark.rule("G-74")
def test_a_time_finer_than_a_microsecond_is_never_woken_at_too_early() -> None:
    # scenario 69
    exact = wake_time({"until": "2025-06-01T12:00:00.123456Z"}, NOW)
    assert wake_time({"until": "2025-06-01T12:00:00.123456001Z"}, NOW) == exact + 1


@pytest.mark.rule("G-74", "G-79")
@pytest.mark.parametrize(
    "until",
    [
        "2025-06-01T12:00:00", "2025-06-01", "tomorrow", "", "20250601T120000Z", 1735689600, None,
        "2025-02-30T12:00:00Z", "2025-06-01T25:00:00Z", "2025-06-01T12:00:60Z", True, [],
        "2025-06-01T12:00:00+24:00", "2025-06-01T12:00:00+05:60", "0000-01-01T00:00:00Z",
        "2025-06-01T12:00:00.Z", "２025-06-01T12:00:00Z",
    ],
)  # fmt: skip
def test_until_without_a_zone_or_that_is_no_time_is_an_error(until: Any) -> None:
    # scenario 67: a naive time is refused
    assert "until" in wait_error({"until": until})


@pytest.mark.rule("G-74")
def test_until_goes_before_a_duration_which_is_not_looked_at() -> None:
    spec = {"until": "2025-06-01T12:00:00Z", "duration": "not one", "duration_seconds": 5}
    assert wake_time(spec, NOW) == micros("2025-06-01T12:00:00+00:00")


@pytest.mark.rule("G-74")
def test_a_wait_that_says_nothing_is_an_error() -> None:
    assert '"duration", "duration_seconds" or "until"' in wait_error({})


@pytest.mark.rule("G-79", "G-88")
@pytest.mark.parametrize("spec", ["1h", 5, None, [], ["duration"], True])
def test_a_spec_that_is_no_object_is_an_error(spec: Any) -> None:
    assert "invalid wait spec" in wait_error(spec)
    assert "invalid wait spec" in signal_error(spec)


@pytest.mark.rule("G-79")
def test_unknown_keys_are_errors_that_name_the_nearest_known_one() -> None:
    # scenario 262: a misspelt key would make a run wait for ever
    assert 'unknown key "duration_second"; did you mean "duration_seconds"?' in wait_error(
        {"duration_second": 5}
    )
    assert 'unknown key "timeout_secs"' in signal_error({"signal": "go", "timeout_secs": 5})
    assert 'unknown key "signal"' in wait_error({"duration": 5, "signal": "go"})
    assert 'unknown key "until"' in signal_error({"signal": "go", "until": "tomorrow"})


def test_one_duration_said_twice_is_an_error() -> None:
    assert "take one out" in wait_error({"duration": 5, "duration_seconds": 5})
    assert "take one out" in signal_error({"signal": "go", "timeout": 5, "timeout_seconds": 5})


@pytest.mark.rule("G-78")
@pytest.mark.parametrize(
    ("spec", "until"),
    [
        ({}, None),
        ({"timeout": 0}, None),
        ({"timeout_seconds": "0"}, None),
        ({"timeout": "1h"}, NOW + HOUR),
        ({"timeout_seconds": 3600}, NOW + HOUR),
        ({"timeout": "1us"}, NOW + 1),
    ],
)
def test_a_wait_for_a_signal_gives_up_after_its_timeout_if_it_has_one(
    spec: Any, until: int | None
) -> None:
    assert awaited({"signal": "go", **spec}, NOW) == ("go", until)


@pytest.mark.rule("G-78", "D-37")
@pytest.mark.parametrize("name", ["x", "x" * 256, "Order Paid / ünïcode", " ", "{{"])
def test_a_signals_name_is_any_text_up_to_256_characters(name: str) -> None:
    assert awaited({"signal": name}, NOW) == (name, None)


@pytest.mark.rule("G-78", "D-37")
@pytest.mark.parametrize("name", ["", "x" * 257, None, 5, ["go"]])
def test_a_name_that_is_none_is_an_error(name: Any) -> None:
    assert "signal must be a name of 1 to 256 characters" in signal_error({"signal": name})


@pytest.mark.rule("G-78")
def test_a_missing_name_is_an_error() -> None:
    assert 'the "signal" it waits for' in signal_error({"timeout": 5})


def test_long_values_are_cut_short_in_messages() -> None:
    assert len(wait_error({"until": "x" * 10_000})) < 200
