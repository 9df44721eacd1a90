"""What an unexpected answer says about asking again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.handlers.http_retry import heals, retry_after

#: Wed, 21 Oct 2015 07:28:00 GMT
NOW = 1_445_412_480_000_000


def test_client_errors_last_except_those_that_ask_to_come_back_later() -> None:
    assert [status for status in range(400, 500) if heals(status)] == [408, 425, 429]


def test_server_errors_heal_except_those_that_say_it_is_not_there() -> None:
    assert [status for status in range(500, 600) if not heals(status)] == [501, 505]


def test_other_unexpected_statuses_last() -> None:
    assert [status for status in range(100, 400) if heals(status)] == []


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7), (" 7 ", 7), ("0", 0), ("007", 7), ("999999999", 999_999_999),
        ("Wed, 21 Oct 2015 07:30:00 GMT", 120),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0),
        ("Wednesday, 21-Oct-15 07:30:00 GMT", 120),
        ("Wed Oct 21 07:30:00 2015", 120),
        ("Wed, 21 Oct 2015 09:30:00 +0200", 120),
    ],
)  # fmt: skip
def test_a_wait_is_read_in_seconds_and_as_a_date(said: str, seconds: float) -> None:
    assert retry_after({"Retry-After": said}, NOW) == seconds


def test_a_date_is_measured_by_the_clock_of_the_server_that_wrote_it() -> None:
    headers = {
        "Retry-After": "Wed, 21 Oct 2015 07:30:00 GMT",
        "Date": "Wed, 21 Oct 2015 07:29:30 GMT",
    }
    assert retry_after(headers, NOW) == 30
    assert retry_after({**headers, "Date": "yesterday"}, NOW) == 120


@pytest.mark.parametrize(
    "said",
    [
        *("", "-1", "7.5", "soon", "9" * 10, "1e3", "٧", "0x10", "2015-10-21T07:30:00Z"),
        *("Wed, 99 Oct 2015 07:30:00 GMT", "x" * 100, "Wed, 21 Oct", "Wed, 21 Oct 99999 1:1:1 GMT"),
    ],
)
def test_what_cannot_be_read_says_nothing(said: str) -> None:
    assert retry_after({"Retry-After": said}, NOW) is None


def test_an_answer_that_does_not_say_gives_no_wait() -> None:
    assert retry_after({}, NOW) is None


@given(st.text(max_size=80), st.text(max_size=80))
def test_whatever_a_server_writes_is_a_wait_or_nothing(said: str, date: str) -> None:
    wait = retry_after({"Retry-After": said, "Date": date}, NOW)
    assert wait is None or 0 <= wait < 1e12
