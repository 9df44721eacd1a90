"""Kinds: what a failure is known by in every process, and which ones are perdure's own."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import Context, RunFailed, StepFailed, step, workflow
from perdure.codec.failures import failure_from, record_failure
from perdure.errors import (
    AlreadyStarted,
    Canceled,
    DefinitionError,
    DuplicateName,
    Failure,
    InvalidId,
    InvalidName,
    InvalidOptions,
    MissingMaxDuration,
    NoCases,
    NotFound,
    Permanent,
    TimedOut,
    Unsupported,
)
from perdure.model.failure import FailureRecord
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


class Declined(Failure, kind="kinds-declined"):
    """Known by its kind."""


def raised_from(error: BaseException) -> BaseException:
    try:
        raise RuntimeError("while paying") from error
    except RuntimeError as wrapped:
        return wrapped


@pytest.mark.rule("W-39")
@pytest.mark.parametrize(
    "wrap",
    [
        lambda e: e,
        raised_from,
        lambda e: raised_from(raised_from(e)),
        lambda e: ExceptionGroup("several", [OSError(), raised_from(e)]),
        Permanent,
    ],
)
def test_a_failure_is_known_by_its_kind_through_any_wrapping(wrap: Any) -> None:
    record = record_failure(wrap(Declined("no money")))
    assert (record.kind, record.message) == ("kinds-declined", "no money")
    assert isinstance(failure_from(record), Declined)


@pytest.mark.rule("W-39")
def test_an_empty_kind_is_no_kind_at_all() -> None:
    assert Failure("text", kind="").kind == "Failure"
    assert Declined("text", kind="").kind == "kinds-declined"
    assert type(failure_from(FailureRecord("", "text"), RunFailed)) is RunFailed


@pytest.mark.rule("W-39")
def test_a_failure_shows_its_message_or_else_its_kind() -> None:
    assert (str(Declined("no money")), str(Declined())) == ("no money", "kinds-declined")


@pytest.mark.rule("W-39")
def test_kinds_of_perdure_s_own_cannot_be_declared() -> None:
    with pytest.raises(InvalidOptions) as refused:
        type("Mine", (Failure,), {"__module__": __name__}, kind="workflow.mine")
    assert str(refused.value) == (
        "kind 'workflow.mine' of Mine: kinds that begin with 'workflow.' are perdure's own, give "
        "it another"
    )
    assert not [c for c in Failure.__subclasses__() if c.kind == "workflow.mine"]


@pytest.mark.rule("W-40")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AlreadyStarted("x"), "workflow.already_started"),
        (Canceled("x"), "workflow.canceled"),
        (NotFound("x"), "workflow.not_found"),
        (TimedOut("x"), "workflow.timeout"),
        (Unsupported("x"), "workflow.unsupported"),
    ],
)
def test_well_known_outcomes_have_their_kinds_on_the_wire(error: Exception, kind: str) -> None:
    assert record_failure(error).kind == kind
    assert failure_from(FailureRecord(kind, "x")).kind == kind


@pytest.mark.rule("W-40")
def test_mistakes_of_declaration_have_types_of_their_own_and_no_kind() -> None:
    for kind in (DuplicateName, InvalidId, InvalidName, InvalidOptions, MissingMaxDuration):
        assert issubclass(kind, DefinitionError)
        assert record_failure(kind("x")).kind == kind.__name__
    assert record_failure(NoCases("x")).kind == "NoCases"


@pytest.mark.rule("W-40")
def test_a_step_that_finds_no_run_fails_in_a_way_that_its_workflow_knows() -> None:
    @step
    async def look() -> None:
        raise NotFound("there is no run order/7")

    @workflow(max_duration="1h")
    async def looking(ctx: Context) -> str:
        try:
            await look()
        except StepFailed as failed:
            return failed.kind
        return ""

    async def main() -> str:
        async with engine_on(VirtualStore(), looking) as engine:
            return await engine.run(looking)

    assert run(main()) == "workflow.not_found"
