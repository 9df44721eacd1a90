"""Unions of records without tags, and the records that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NewType, TypedDict

import msgspec
import pytest

from perdure.flow.shapes import readable
from perdure.flow.typed import reader
from perdure.model.errors import InvalidRequest


@dataclass
class Approve:
    by: str


@dataclass
class Reject:
    why: str


@dataclass
class Nothing: ...


@dataclass
class Longer:
    by: str
    note: str = ""


@dataclass
class Verdicts:
    first: Approve | Reject | None
    more: list[Approve | Reject | int] = field(default_factory=list)
    after: Verdicts | None = None
    computed: int = field(default=7, init=False)


@dataclass
class Cat:
    kind: Literal["cat"]


@dataclass
class Dog:
    kind: Literal["dog"]


@dataclass
class Twin:
    by: str


class Held(msgspec.Struct, rename="camel"):
    the_verdict: Approve | Reject


class Keyed(TypedDict):
    verdict: Approve | Reject


class Tagged(msgspec.Struct, tag="tagged"):
    by: str


Alias = NewType("Alias", Approve)


def read(kind: Any, value: Any) -> Any:
    return reader(kind, "it")(msgspec.Raw(msgspec.json.encode(value)))


def there_and_back(kind: Any, value: Any) -> None:
    assert read(kind, value) == value


def test_a_type_that_msgspec_reads_is_left_alone() -> None:
    for kind in (int, list[str], Approve, Approve | None, str | int, dict[str, Approve]):
        assert readable(kind) is kind


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Approve | Reject, Approve("ann")),
        (Approve | Reject, Reject("no")),
        (Approve | Reject | None, None),
        (Approve | Reject | int | str, "text"),
        (Approve | Reject | Nothing, Nothing()),
        (Approve | Longer, Approve("ann")),
        (Approve | Longer, Longer("ann", "x")),
        (list[Approve | Reject], [Reject("no"), Approve("ann")]),
        (dict[str, Approve | Reject], {"a": Approve("ann")}),
        (tuple[Approve | Reject, ...], (Approve("ann"), Reject("no"))),
        (Annotated[Approve | Reject, "which"], Approve("ann")),
        (Cat | Dog, Dog("dog")),
        (Tagged | Approve | Reject, Tagged("ann")),
        (Tagged | Approve | Reject, Approve("ann")),
        (Held, Held(Reject("no"))),
        (Keyed, {"verdict": Approve("ann")}),
        (list[Alias | Reject], [Approve("ann")]),
        (Verdicts, Verdicts(Reject("no"), [1, Approve("ann")], Verdicts(None))),
    ],
    ids=str,
)
def test_what_was_written_is_read_as_what_it_was(kind: Any, value: Any) -> None:
    there_and_back(kind, value)


def test_a_sender_may_leave_out_what_has_a_default() -> None:
    assert read(Longer | Reject, {"by": "ann"}) == Longer("ann")
    assert read(Verdicts, {"first": None}) == Verdicts(None)


def test_a_value_that_would_fit_several_is_refused_and_not_guessed() -> None:
    with pytest.raises(InvalidRequest, match="it fits Approve and Twin: give them different"):
        read(Approve | Twin, {"by": "ann"})


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (Approve | Reject, {"by": 3}, r"it: Expected `str`, got `int` - at `\$.by`$"),
        (Approve | Reject, {"who": 3}, r"Expected `Approve \| Reject`, got an object with who$"),
        (Approve | Reject, {}, "got an object with no fields$"),
        (Approve | Reject, 3, r"Expected `Approve \| Reject`, got `int`$"),
        (Approve | Reject, None, "got `null`$"),
        (Cat | Dog, {"kind": "cow"}, r"Expected `Cat \| Dog`"),
        (Verdicts, {"more": []}, "missing required field `first`"),
        (Verdicts, [], "Expected `Verdicts`, got `list`"),
        (Held, {"theVerdict": {"by": 3}}, r"at `\$.theVerdict.by`$"),
        (
            Verdicts,
            {"first": None, "after": {"first": None, "more": [1, {"why": 3}]}},
            r"Expected `str`, got `int` - at `\$.after.more\[1\].why`$",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_told_with_its_whole_path(kind: Any, value: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        read(kind, value)


def test_models_of_pydantic_are_told_apart_by_their_fields() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    class Yes(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        by: str

    class No(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        why: str = "so"

    assert read(Yes | No, {"by": "ann"}) == Yes(by="ann")
    assert read(Yes | No, {}) == No()
    with pytest.raises(InvalidRequest, match="by: Input should be a valid string"):
        read(Yes | No, {"by": 3})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (object, {"a": [1, None]}), (list[object], [1, "a", None]), (object | None, None),
        (dict[str, object], {"a": {"b": 1}}),
    ],
)  # fmt: skip
def test_an_object_is_whatever_came(kind: Any, value: Any) -> None:
    there_and_back(kind, value)
