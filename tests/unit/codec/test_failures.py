"""Failures: recording never fails, wrapping loses nothing, classes come back by kind."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.codec.failures import (
    DETAILS_LIMIT,
    MESSAGE_LIMIT,
    failure_from,
    record_failure,
)
from perdure.codec.values import JsonCodec
from perdure.model.errors import Canceled, Failure, Permanent, RunFailed, StepFailed, TimedOut
from perdure.model.failure import FailureRecord


class CardDeclined(Failure, kind="test.card-declined", permanent=True):
    def __init__(self, card: str, amount: int) -> None:
        super().__init__(f"{card} declined", details={"amount": amount})
        self.amount = amount


class DebitDeclined(CardDeclined):
    pass


class Busy(Failure):
    pass


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("broken")


class Hostile(Failure):
    def __init__(self) -> None:
        Exception.__init__(self)

    def __getattribute__(self, name: str) -> object:
        if name in {"kind", "message", "details", "retry_after", "permanent"}:
            raise RuntimeError(name)
        return super().__getattribute__(name)


def chained(outer: BaseException, *inner: BaseException) -> BaseException:
    for cause in inner:
        outer.__cause__ = cause
        outer = cause
    return outer


def test_an_ordinary_exception_is_its_type_name_and_text() -> None:
    assert record_failure(ValueError("no")) == FailureRecord("ValueError", "no")
    assert record_failure(KeyError("k"), permanent=True) == FailureRecord(
        "KeyError", "'k'", permanent=True
    )


@pytest.mark.rule("W-41")
def test_the_first_failure_of_the_chain_is_recorded_without_its_wrapping() -> None:
    # scenario 113
    first = RuntimeError("while charging")
    chained(first, OSError("x"), CardDeclined("visa", 5), Busy("inner"))
    assert record_failure(first) == FailureRecord(
        "test.card-declined", "visa declined", permanent=True, details={"amount": 5}
    )


@pytest.mark.rule("W-43")
def test_permanence_survives_any_wrapping() -> None:
    # scenario 113
    outer = ValueError("outer")
    chained(outer, Busy("retry me"), Permanent(OSError("disk")))
    assert record_failure(outer) == FailureRecord("Busy", "retry me", permanent=True)
    group = ExceptionGroup("g", [ValueError("a"), Permanent("stop")])
    assert record_failure(group) == FailureRecord("Permanent", "stop", permanent=True)


@pytest.mark.rule("W-43")
def test_permanent_keeps_kind_and_message_of_what_it_marks() -> None:
    assert record_failure(Permanent(CardDeclined("visa", 5))).kind == "test.card-declined"
    assert record_failure(Permanent(OSError("gone"))) == FailureRecord(
        "OSError", "gone", permanent=True
    )


def test_an_error_while_handling_another_is_its_own() -> None:
    error = ConnectionError("clean-up failed")
    error.__context__ = Permanent("first")
    assert record_failure(error) == FailureRecord("ConnectionError", "clean-up failed")


def test_a_circle_of_causes_ends() -> None:
    a, b = ValueError("a"), ValueError("b")
    a.__cause__, b.__cause__ = b, a
    assert record_failure(a) == FailureRecord("ValueError", "a")


def test_groups_say_what_is_in_them() -> None:
    group = ExceptionGroup("both", [ValueError("a"), Mute()])
    record = record_failure(group)
    assert record.kind == "ExceptionGroup"
    assert "ValueError: a; Mute: (its message cannot be read" in record.message
    assert record_failure(ExceptionGroup("one", [KeyError("k")])) == FailureRecord(
        "KeyError", "'k'"
    )


@pytest.mark.rule("W-41")
def test_cancellation_and_timeouts_of_the_engine_have_their_kinds() -> None:
    assert record_failure(asyncio.CancelledError()).kind == Canceled.kind == "workflow.canceled"
    assert record_failure(TimedOut("late")).kind == "workflow.timeout"
    assert record_failure(TimeoutError("socket")).kind == "TimeoutError"


@pytest.mark.parametrize(
    "error",
    [
        Mute(),
        Hostile(),
        ValueError("\ud800"),
        ValueError(object()),
        ExceptionGroup("\udfff", [Mute(), Hostile()]),
        Failure("m", details=object()),
        Failure("m", details={"n": float("nan"), 1: {2}}),
        Failure(123),  # type: ignore[arg-type]
        Failure("m", kind="\ud800"),
        Failure("m", retry_after="soon"),
        KeyboardInterrupt(),
    ],
    ids=lambda error: type(error).__name__.encode("ascii", "replace").decode(),
)
def test_recording_never_fails(error: BaseException) -> None:
    # scenarios 105, 109
    record = record_failure(error)
    assert msgspec.json.decode(msgspec.json.encode(record), type=FailureRecord) == record
    assert record.kind


@given(st.text(st.characters(), max_size=50).map(lambda s: s * 400))
@example("\ud800" * 400)
def test_messages_are_cut_at_a_character_and_say_so(text: str) -> None:
    message = record_failure(ValueError(text)).message
    shown = text.encode("utf-8", "backslashreplace").decode()
    assert len(message.encode()) <= MESSAGE_LIMIT
    assert message == shown or message.endswith("bytes in all)")


def test_details_that_are_not_json_are_kept_as_text() -> None:
    assert record_failure(Failure("m", details={"n": float("nan")})).details == "{'n': nan}"
    details = {"blob": "x" * DETAILS_LIMIT}
    assert record_failure(Failure("m", details=details)).details.startswith("(details of 65,")


def test_details_are_what_a_reader_will_see() -> None:
    details = record_failure(Failure("m", details={"when": (1, 2)})).details
    assert details == {"when": [1, 2]}


def test_retry_after_is_recorded_in_microseconds() -> None:
    assert record_failure(Busy("m", retry_after=1.5)).retry_after == 1_500_000
    assert record_failure(Busy("m", retry_after=timedelta(hours=1))).retry_after == 3_600_000_000
    assert record_failure(Busy("m", retry_after=0)).retry_after == 0
    assert record_failure(Busy("m", retry_after="whenever")).retry_after is None


@pytest.mark.rule("W-42")
def test_a_failure_comes_back_as_its_class_without_its_constructor() -> None:
    # scenario 114
    failure = failure_from(record_failure(CardDeclined("visa", 5)))
    assert type(failure) is CardDeclined
    assert (str(failure), failure.kind, failure.permanent) == (
        "visa declined", "test.card-declined", True,
    )  # fmt: skip
    assert failure.details == {"amount": 5}
    assert not hasattr(failure, "amount")


@pytest.mark.rule("W-42")
def test_a_subclass_that_inherits_its_kind_comes_back_as_the_class_that_declares_it() -> None:
    assert type(failure_from(record_failure(DebitDeclined("visa", 5)))) is CardDeclined


@pytest.mark.rule("W-42")
@pytest.mark.parametrize("error", [TimedOut("t"), Canceled("c"), Busy("b"), Permanent("p")])
def test_kinds_of_perdure_and_of_users_find_their_class(error: Failure) -> None:
    back = failure_from(record_failure(error))
    assert type(back) is type(error)
    assert str(back) == str(error)


@pytest.mark.rule("W-42")
def test_an_unknown_kind_becomes_the_class_asked_for_and_keeps_its_mark() -> None:
    record = FailureRecord("app.unheard-of", "m", permanent=True, retry_after=7)
    failure = failure_from(record, StepFailed)
    assert type(failure) is StepFailed
    assert failure.permanent
    assert failure.retry_after == timedelta(microseconds=7)
    assert record_failure(failure) == record


def test_the_class_declared_last_wins() -> None:
    first = type("Again", (Failure,), {}, kind="test.again")
    second = type("Again", (Failure,), {}, kind="test.again")
    found = type(failure_from(FailureRecord("test.again", "m")))
    assert found is second
    assert found is not first


@given(
    st.builds(
        FailureRecord,
        kind=st.text(min_size=1, max_size=20),
        message=st.text(max_size=20),
        permanent=st.booleans(),
        retry_after=st.none() | st.integers(0, 2**53),
        details=st.none() | st.dictionaries(st.text(), st.integers(-5, 5), max_size=3),
    )
)
@pytest.mark.rule("W-42")
def test_a_record_survives_becoming_an_exception(record: FailureRecord) -> None:
    assert record_failure(failure_from(record, RunFailed)) == record


@pytest.mark.rule("W-47")
def test_nothing_of_the_cause_or_traceback_is_recorded() -> None:
    error = Failure("shown")
    error.__cause__ = ValueError("secret")
    assert b"secret" not in JsonCodec().encode(record_failure(error))


class Panic(BaseException):
    """What extension modules raise when they panic: no Exception."""


class Panicking(Exception):
    def __str__(self) -> str:
        raise Panic


class PanickingDetails:
    def __repr__(self) -> str:
        raise Panic


class Nameless(type):
    @property
    def __name__(cls) -> str:
        raise Panic


class OfNamelessKind(Exception, metaclass=Nameless):
    pass


def test_recording_survives_users_objects_that_raise_what_is_no_exception() -> None:
    assert record_failure(Panicking()).message == (
        "(its message cannot be read: __str__ raised Panic)"
    )
    details = record_failure(Failure("m", details=PanickingDetails())).details
    assert details == "(a PanickingDetails whose repr cannot be read)"
    assert record_failure(OfNamelessKind("m")) == FailureRecord("OfNamelessKind", "m")
    group = ExceptionGroup("g", [OfNamelessKind("m"), ValueError()])
    assert "OfNamelessKind: m" in record_failure(group).message


def test_texts_are_cut_after_secrets_are_taken_out_of_them() -> None:
    long = "z" * (MESSAGE_LIMIT - 100) + "hunter2" * 20
    record = record_failure(
        Failure(long, details={1: long}), redact=lambda text: text.replace("hunter2", "*")
    )
    assert record.message.endswith("z" + "*" * 20)
    assert "hunter" not in record.details
