"""The tree of exceptions: who must act can be told by class, and outcomes keep their identity."""

from __future__ import annotations

import pytest

from perdure.model import errors


class CardDeclined(errors.Failure, kind="test.errors.card-declined", permanent=True):
    pass


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (errors.InvalidName, [errors.DefinitionError]),
        (errors.InvalidId, [errors.DefinitionError]),
        (errors.InvalidOptions, [errors.DefinitionError]),
        (errors.DuplicateName, [errors.DefinitionError]),
        (errors.MissingMaxDuration, [errors.DefinitionError]),
        (errors.GraphError, [errors.DefinitionError]),
        (errors.PayloadTooLarge, [errors.InvalidRequest]),
        (errors.NoCases, [errors.InvalidRequest]),
        (errors.StepFailed, [errors.Failure]),
        (errors.RunFailed, [errors.Failure]),
        (errors.TimedOut, [errors.Failure, TimeoutError]),
        (errors.Canceled, [errors.Failure]),
    ],
)
def test_an_error_is_caught_by_who_must_act(error: type, parents: list[type]) -> None:
    assert all(issubclass(error, parent) for parent in [*parents, errors.PerdureError])


def test_trouble_of_the_machinery_is_no_outcome() -> None:
    for error in (errors.StoreError, errors.NonDeterminism):
        assert not issubclass(error, (errors.Failure, errors.InvalidRequest))


@pytest.mark.rule("D-24")
def test_a_definition_error_lists_all_its_problems() -> None:
    error = errors.GraphError("two problems", ["one", "two"])
    assert (str(error), list(error.problems)) == ("two problems", ["one", "two"])
    assert list(errors.InvalidName("only this").problems) == ["only this"]


@pytest.mark.rule("D-16")
def test_a_failure_carries_kind_message_and_whether_it_is_permanent() -> None:
    failure = CardDeclined("no money", details={"code": 51})
    assert (failure.kind, failure.message) == ("test.errors.card-declined", "no money")
    assert failure.permanent
    assert (str(failure), failure.details) == ("no money", {"code": 51})
    assert (errors.TimedOut().kind, errors.Canceled().kind) == (
        "workflow.timeout",
        "workflow.canceled",
    )


def test_a_failure_without_a_kind_is_named_after_its_class() -> None:
    class Busy(errors.Failure):
        pass

    assert (Busy().kind, str(Busy()), Busy().permanent) == ("Busy", "Busy", False)
    assert errors.Failure("x", kind="gone").kind == "gone"


@pytest.mark.rule("D-16")
def test_permanent_keeps_kind_message_and_cause_of_what_it_stops() -> None:
    cause = ValueError("bad card")
    stopped = errors.Permanent(cause)
    assert (stopped.kind, stopped.message, stopped.permanent) == ("ValueError", "bad card", True)
    assert stopped.__cause__ is cause
    assert errors.Permanent(CardDeclined("x")).kind == "test.errors.card-declined"
    assert errors.Permanent("never").kind == "Permanent"


def test_already_started_brings_the_handle() -> None:
    handle = object()
    assert errors.AlreadyStarted("there is one", handle).run is handle
