"""Resources: found by type, exact first; several that fit are an error, never a guess."""

from __future__ import annotations

from typing import Protocol, runtime_checkable
from unittest.mock import Mock

import pytest

from perdure.engine.attempts.resources import Resources
from perdure.engine.handlers.port import Attempt
from perdure.model.errors import DefinitionError, InvalidRequest, NotFound
from perdure.model.step_context import StepContext

ATTEMPT = Attempt("w", "r", "n", "TASK", "t", 0, None)


class Mailer:
    def send(self) -> str:
        return "sent"


class FakeMailer(Mailer): ...


class OtherMailer(Mailer): ...


@runtime_checkable
class Sends(Protocol):
    def send(self) -> str: ...


class Plain(Protocol):
    def send(self) -> str: ...


def test_the_object_of_exactly_the_type_is_found_before_those_of_subclasses() -> None:
    mailer, fake = Mailer(), FakeMailer()
    resources = Resources([fake, mailer])
    assert resources.find(Mailer) is mailer
    assert resources.find(FakeMailer) is fake


def test_an_object_of_a_subclass_stands_in() -> None:
    fake = FakeMailer()
    resources = Resources([fake, 7])
    assert resources.find(Mailer) is resources.find(Mailer) is fake
    assert resources.find(Sends) is fake


class Logged:
    """A wrapper that passes everything on."""

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_a_wrapper_that_passes_the_methods_of_a_protocol_on_stands_in() -> None:
    # From Python 3.12 on isinstance() does not see it.
    logged = Logged(Mailer())
    assert Resources([4, logged]).find(Sends) is logged
    with pytest.raises(NotFound):
        Resources([Logged(3)]).find(Sends)


def test_a_mock_of_the_type_stands_in() -> None:
    mock = Mock(spec=Mailer)
    assert Resources([mock]).find(Mailer) is mock


def test_falsy_objects_are_resources_too() -> None:
    assert Resources([0]).find(int) == 0


def test_several_that_fit_are_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="ask for one of FakeMailer, OtherMailer"):
        Resources([OtherMailer(), FakeMailer()]).find(Mailer)


def test_a_type_that_nothing_fits_is_not_found() -> None:
    with pytest.raises(NotFound, match="no resource of type Mailer"):
        Resources([3]).find(Mailer)


def test_a_protocol_that_cannot_be_checked_says_how_to_make_it() -> None:
    with pytest.raises(InvalidRequest, match="runtime_checkable"):
        Resources([Mailer()]).find(Plain)


def test_two_of_one_type_and_classes_are_refused_at_once() -> None:
    with pytest.raises(DefinitionError) as error:
        Resources([Mailer(), Mailer(), FakeMailer])
    assert len(error.value.problems) == 2
    same = Mailer()
    assert Resources([same, same]).find(Mailer) is same


def test_a_step_asks_its_context() -> None:
    mailer = Mailer()
    context = StepContext(ATTEMPT, Resources([mailer]))
    assert context.resource(Mailer) is mailer
    with pytest.raises(NotFound, match=r"Engine\(resources=\[\.\.\.\]\)"):
        StepContext(ATTEMPT).resource(Mailer)
