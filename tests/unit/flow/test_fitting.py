"""Fitting: what is told before a run fails in the run too, and what works is never told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from perdure.flow.step import Step, step
from perdure.model.errors import InvalidRequest
from perdure.model.unknown import UNKNOWN, UNKNOWN_TEXT


class Order(msgspec.Struct):
    id: str
    items: list[int]
    note: str = ""


@step
def greet(name: str) -> None: ...


@step
def ship(order: Order, count: int = 1) -> None: ...


@step
def take(order: Order) -> None: ...


@step
def nothing() -> None: ...


@step
def anything(a: int, *rest: int, **more: Any) -> None: ...


@step
def plain(value, other=None) -> None: ...  # type: ignore[no-untyped-def]


GOOD: list[tuple[Step[..., Any], Any]] = [
    (greet, "ann"), (greet, {"name": "ann"}), (ship, {"order": {"id": "1", "items": [1, 2.0]}}),
    (ship, {"order": {"id": "1", "items": []}, "count": 2.0}), (take, {"id": "1", "items": []}),
    (take, {"order": {"id": "1", "items": []}}), (nothing, UNSET), (nothing, {}),
    (anything, {"a": 1, "b": 2}), (anything, {"a": 1, "rest": [1]}), (plain, {"value": [1]}),
]  # fmt: skip
BAD: list[tuple[Step[..., Any], Any]] = [
    (greet, UNSET), (greet, 5), (greet, {"nmae": "ann"}), (greet, {"name": 5}), (greet, {}),
    (ship, {"ordr": {}}), (ship, {"order": {"id": "1", "items": ["x"]}}), (ship, [1]),
    (ship, UNSET),
    (ship, {"order": {"id": "1", "items": []}, "count": 2.5}), (take, {"id": "1"}), (take, []),
    (nothing, {"a": 1}), (nothing, 3), (anything, {"b": 1}), (plain, {"valeu": 1}), (plain, {}),
]  # fmt: skip


@pytest.mark.parametrize(("called", "input"), GOOD)
def test_what_works_is_not_told(called: Step[..., Any], input: Any) -> None:
    called.bind(input)
    assert called.misfits(input) == []


@pytest.mark.parametrize(("called", "input"), BAD)
def test_what_a_run_would_refuse_is_told(called: Step[..., Any], input: Any) -> None:
    with pytest.raises(InvalidRequest):
        called.bind(input)
    assert called.misfits(input) != []


def blurred(value: Any, blur: Callable[[Any], bool]) -> Any:
    """The value with some of its scalars not known."""
    if isinstance(value, dict):
        return {key: blurred(item, blur) for key, item in value.items()}
    if isinstance(value, list):
        return [blurred(item, blur) for item in value]
    return UNKNOWN if blur(value) else value


@pytest.mark.parametrize(("called", "input"), GOOD)
def test_what_may_work_is_not_told(called: Step[..., Any], input: Any) -> None:
    for blur in (
        lambda _: True,
        lambda v: isinstance(v, str),
        lambda v: isinstance(v, (int, float)),
    ):
        assert called.misfits(blurred(input, blur)) == []


TAKE = "it takes (order: Order)"
SHIP = "it takes (order: Order, count: int = ...)"


@pytest.mark.parametrize(
    ("called", "input", "told"),
    [
        (greet, UNKNOWN, []),
        (greet, UNKNOWN_TEXT, []),
        (greet, {"nmae": UNKNOWN},
         ['nmae|step greet has no parameter "nmae"|did you mean "name"?']),
        (greet, {"x": UNKNOWN}, [
            "x|step greet has no parameter \"x\"|it takes (name: str)",
            "|step greet needs its parameter \"name\"|it takes (name: str)"]),
        (ship, {"order": UNKNOWN, "count": UNKNOWN_TEXT},
         [f"count|step ship, parameter 'count': Expected `int`, got `str`|{SHIP}"]),
        (ship, {"order": {"id": UNKNOWN}},
         [f"order|step ship, parameter 'order': Object missing required field `items`|{SHIP}"]),
        (ship, {"order": [UNKNOWN]},
         [f"order|step ship, parameter 'order': Expected `object`, got `array`|{SHIP}"]),
        (take, {"id": UNKNOWN}, [
            f"|step take, parameter 'order': Object missing required field `items`|{TAKE}"]),
        (ship, UNSET, [f"|step ship needs its parameter \"order\"|{SHIP}"]),
        (ship, [1], [f"|step ship takes its parameters by name, not an array|{SHIP}"]),
    ],
)  # fmt: skip
def test_what_is_sure_is_told_with_what_to_do(
    called: Step[..., Any], input: Any, told: list[str]
) -> None:
    found = ["|".join([*at, said, hint] if at else ["", said, hint])
             for at, said, hint in called.misfits(input)]  # fmt: skip
    assert [text.replace(f"{__name__}.", "") for text in found] == told


def test_a_misspelt_name_is_suggested_in_the_run_too() -> None:
    with pytest.raises(InvalidRequest, match=r'no parameter nmae \(did you mean "name"\)'):
        greet.bind({"nmae": "ann"})
