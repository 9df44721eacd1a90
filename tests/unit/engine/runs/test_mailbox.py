"""The mailbox: each message once, in the order of their numbers, however they come."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from perdure.engine.runs.mailbox import Mailbox, event_of
from perdure.kernel.events import RunCancelled, RunPaused, RunUnpaused, SignalReceived
from perdure.model.errors import InvalidRequest
from perdure.stores.answers import Mail


def mail(n: int) -> Mail:
    return Mail(n, f"m{n}", "signal", "item")


@given(st.integers(0, 5), st.lists(st.lists(st.integers(1, 20), max_size=5), max_size=12))
def test_whatever_comes_when_each_message_has_its_turn_once_and_in_order(
    read: int, parts: list[list[int]]
) -> None:
    box = Mailbox(read)
    turns = [m.n for part in parts for m in box.arrived(mail(n) for n in part)]
    assert turns == list(range(read + 1, read + 1 + len(turns)))
    come = {n for part in parts for n in part if n > read}
    without_gap = list(itertools.takewhile(lambda n: n in come, itertools.count(read + 1)))
    assert turns == without_gap
    assert box.missing == bool(come - set(without_gap))
    assert box.taken == read + len(turns)


def test_hearing_of_mail_that_is_not_here_makes_it_missing() -> None:
    box = Mailbox(3)
    assert not box.missing
    box.known = 5
    assert box.missing
    assert [m.n for m in box.arrived([mail(4), mail(5)])] == [4, 5]
    assert not box.missing


@pytest.mark.parametrize(
    ("message", "event"),
    [
        (Mail(1, "m", "signal", "ok", b"1"), SignalReceived("ok", "m", Raw(b"1"))),
        (Mail(1, "m", "signal", "ok"), SignalReceived("ok", "m", None)),
        (Mail(1, "m", "cancel", "", b'"why"'), RunCancelled("why")),
        (Mail(1, "m", "cancel"), RunCancelled("")),
        (Mail(1, "m", "pause"), RunPaused()),
        (Mail(1, "m", "unpause"), RunUnpaused()),
    ],
)
def test_what_a_message_means(message: Mail, event: object) -> None:
    assert event_of(message) == event


@pytest.mark.parametrize("message", [Mail(1, "m", "other"), Mail(1, "m", "cancel", "", b"{")])
def test_a_message_that_means_nothing_is_refused(message: Mail) -> None:
    with pytest.raises(InvalidRequest):
        event_of(message)
