"""Signals and channels: names, types, keys and the cases of a select."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from perdure import After, Channel, On, Signal
from perdure.model.errors import InvalidName, InvalidOptions, InvalidRequest


class Approve(msgspec.Struct, tag=True):
    by: str


class Reject(msgspec.Struct, tag=True):
    why: str


@pytest.mark.rule("W-1", "W-7")
@pytest.mark.parametrize("kind", [Signal, Channel])
@pytest.mark.parametrize("name", ["", "Bad", "-a", "a-", "a b", "x" * 65])
def test_a_bad_name_is_refused_where_it_is_written(kind: Any, name: str) -> None:
    with pytest.raises(InvalidName):
        kind(name, int)


@pytest.mark.rule("W-7")
def test_a_type_that_cannot_be_read_is_refused_where_it_is_written() -> None:
    with pytest.raises(InvalidOptions, match="cannot be read from JSON"):
        Signal("ok", 5)  # type: ignore[arg-type]


def test_a_value_is_read_as_its_type_and_an_error_says_which_field_does_not_fit() -> None:
    decision: Signal[Approve | Reject] = Signal("decision", Approve | Reject)
    assert decision.read(Raw(b'{"type":"Reject","why":"late"}')) == Reject("late")
    with pytest.raises(InvalidRequest, match=r"signal decision: .*why"):
        decision.read(Raw(b'{"type":"Reject","why":5}'))


def test_a_key_makes_a_mailbox_of_its_own() -> None:
    ok = Signal("ok", int)
    assert ok["a"].name == "ok[a]"
    assert ok["a"].base == ok.name == "ok"
    assert type(Channel("news", str)["x"]) is Channel


@pytest.mark.parametrize("key", ["", "a\nb", "x" * 129, 5])
def test_a_key_is_short_text_and_there_is_one_of_it(key: Any) -> None:
    ok = Signal("ok", int)
    with pytest.raises(InvalidOptions, match="1-128 printable"):
        ok[key]
    with pytest.raises(InvalidOptions, match="has its key already"):
        ok["a"]["b"]


@pytest.mark.rule("W-33")
def test_cases_that_cannot_be_waited_for_are_refused_where_they_are_written() -> None:
    with pytest.raises(InvalidRequest, match="give it a Signal or a Channel"):
        On(5)  # type: ignore[call-overload]
    with pytest.raises(InvalidOptions, match="not a duration"):
        After("soon")
    with pytest.raises(InvalidOptions, match="no time zone"):
        After(datetime(2030, 1, 1))  # noqa: DTZ001
