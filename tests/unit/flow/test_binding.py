"""Arguments of steps called by name: by parameter name, as one value, or refused with a reason."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypedDict, TypeVar

import msgspec
import pytest

from perdure.flow.binding import Binder
from perdure.model.errors import InvalidRequest

T = TypeVar("T")


class Order(msgspec.Struct):
    id: str
    qty: int = 1


class Line(TypedDict):
    sku: str


class Modelled:
    """Validates itself as a pydantic model does."""

    def __init__(self, id: str) -> None:
        self.id = id

    @classmethod
    def model_validate(cls, value: Any) -> Modelled:
        if not isinstance(value, dict) or "id" not in value:
            raise ValueError("id is missing")
        return cls(value["id"])


def call(function: Callable[..., T], *input: Any) -> T:
    args, kwargs = Binder("ship", function).bind(*input)
    return function(*args, **kwargs)


def pair(order: str, note: str = "-") -> tuple[str, str]:
    return order, note


def single(order: Any) -> Any:
    return order


def nothing() -> str:
    return "called"


@pytest.mark.parametrize(
    ("input", "bound"),
    [
        ({"order": "o", "note": "n"}, ("o", "n")),
        ({"order": "o"}, ("o", "-")),
        ({"note": "n", "order": ""}, ("", "n")),
    ],
)
def test_an_object_is_bound_by_parameter_name(input: Any, bound: Any) -> None:
    assert call(pair, input) == bound


@pytest.mark.parametrize("value", [None, 0, "", [], {}, False, "x", {"a": 1}, {"order": 1, "b": 2}])
def test_one_parameter_takes_any_other_input_as_its_value(value: Any) -> None:
    # scenario 110: falsy values are values
    assert call(single, value) == value


def test_one_parameter_named_by_the_object_takes_what_is_under_its_name() -> None:
    assert call(single, {"order": {"order": 1}}) == {"order": 1}
    assert call(single, {"order": None}) is None


def test_an_empty_object_calls_a_step_whose_parameters_all_have_defaults() -> None:
    def greet(name: str = "you") -> str:
        return name

    assert call(greet, {}) == call(greet) == "you"


def test_no_input_is_a_call_without_arguments() -> None:
    assert call(nothing) == call(nothing, {}) == "called"


@pytest.mark.parametrize(
    ("function", "input", "said"),
    [
        (pair, (), ["(order: str, note: str = ...)", "lacks order"]),
        (pair, ({"note": "n"},), ["lacks order"]),
        (pair, ({"order": "o", "colour": 1, "size": 2},), ["no parameter colour, size"]),
        (pair, ("text",), ["the input is a string", "one value per parameter"]),
        (pair, (None,), ["the input is null"]),
        (nothing, ({"x": 1},), ["ship takes no arguments", "no parameter x"]),
        (nothing, (None,), ["the input is null"]),
        (single, (), ["lacks order"]),
    ],
)
def test_what_does_not_fit_is_refused_with_the_signature(
    function: Any, input: Any, said: list[str]
) -> None:
    with pytest.raises(InvalidRequest) as error:
        call(function, *input)
    for part in ["step ship takes ", *said]:
        assert part in str(error.value)


def test_values_of_defaults_do_not_appear_in_refusals() -> None:
    def pay(order: str, token: str = "hunter2") -> None: ...

    with pytest.raises(InvalidRequest) as error:
        call(pay, {})
    assert "hunter2" not in str(error.value)


def test_values_are_converted_to_the_annotated_types() -> None:
    def typed(order: Order, at: datetime, lines: list[Line], names: dict[int, str]) -> Any:
        return order, at.year, lines, names

    given = {"order": {"id": "7"}, "at": "2024-01-02T00:00:00Z", "lines": [{"sku": "a"}]}
    assert call(typed, given | {"names": {"1": "x"}}) == (
        Order("7"), 2024, [{"sku": "a"}], {1: "x"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"id": 5}, "parameter 'order': Expected `str`, got `int` - at `$.id`"),
        ({"id": "7", "qty": 1.5}, "at `$.qty`"),
        ("text", "Expected `object`, got `str`"),
    ],
)
def test_a_mismatch_is_refused_with_its_path(value: Any, said: str) -> None:
    def take(order: Order) -> None: ...

    with pytest.raises(InvalidRequest) as error:
        call(take, {"order": value})
    assert said in str(error.value)


def test_whole_numbers_fit_int_and_float_alike_however_json_writes_them() -> None:
    def sizes(n: int, x: float, many: list[int]) -> Any:
        return n, x, many

    bound = call(sizes, {"n": 2.0, "x": 3, "many": [1.0, 2]})
    assert bound == (2, 3.0, [1, 2])
    assert [type(v) for v in bound[:2]] == [int, float]
    assert all(type(v) is int for v in bound[2])


def test_a_boolean_is_not_a_number() -> None:
    def take(n: int) -> None: ...

    with pytest.raises(InvalidRequest, match="Expected `int`, got `bool`"):
        call(take, True)


def test_models_validate_themselves_alone_and_inside_lists() -> None:
    def take(one: Modelled, many: list[Modelled]) -> Any:
        return [m.id for m in [one, *many]]

    assert call(take, {"one": {"id": "a"}, "many": [{"id": "b"}]}) == ["a", "b"]
    with pytest.raises(InvalidRequest, match=r"parameter 'many'.*at `\$\[0\]`"):
        call(take, {"one": {"id": "a"}, "many": [{}]})


def test_a_model_s_complaint_quotes_no_values() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    class Card(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        number: int

    def pay(card: Any) -> None: ...

    pay.__annotations__["card"] = Card
    with pytest.raises(InvalidRequest) as error:
        call(pay, {"card": {"number": "hunter2"}})
    assert "number" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_an_annotation_that_cannot_be_resolved_lets_the_value_pass() -> None:
    def take(order: Missing, n: int) -> Any:  # type: ignore[name-defined]  # noqa: F821
        return order, n

    assert call(take, {"order": {"a": 1}, "n": 1}) == ({"a": 1}, 1)
    with pytest.raises(InvalidRequest):
        call(take, {"order": {"a": 1}, "n": "1"})


def test_a_class_that_json_cannot_make_is_refused_by_name() -> None:
    def take(wait: timedelta | None, loop: subprocess.Popen[bytes]) -> None: ...

    with pytest.raises(InvalidRequest, match="a Popen cannot be made from JSON"):
        call(take, {"wait": None, "loop": {"pid": 1}})


def test_a_type_variable_takes_anything() -> None:
    def identity(x: T) -> T:
        return x

    assert call(identity, {"x": [1]}) == [1]


def test_star_parameters_take_an_array_and_the_names_left_over() -> None:
    def many(a: int, b: int = 2, *rest: int, flag: bool = False, **more: str) -> Any:
        return a, b, rest, flag, more

    assert call(many, {"a": 1}) == (1, 2, (), False, {})
    assert call(many, {"a": 1, "rest": [3, 4]}) == (1, 2, (3, 4), False, {})
    given = {"a": 1, "b": 5, "rest": [3.0], "flag": True, "z": "text"}
    assert call(many, given) == (1, 5, (3,), True, {"z": "text"})
    with pytest.raises(InvalidRequest, match="must be an array"):
        call(many, {"a": 1, "rest": 3})
    with pytest.raises(InvalidRequest, match="parameter 'more'"):
        call(many, {"a": 1, "z": 9})


def test_positional_only_parameters_keep_their_places() -> None:
    def place(a: int = 1, b: int = 2, /, c: int = 3) -> Any:
        return a, b, c

    assert call(place, {"b": 5}) == (1, 5, 3)
    assert call(place, {"a": 7, "c": 9}) == (7, 2, 9)


def test_inputs_given_are_not_changed() -> None:
    given = {"order": "o"}
    _, kwargs = Binder("ship", pair).bind(given)
    kwargs["note"] = "changed"
    assert given == {"order": "o"}


def test_annotations_that_do_not_exist_yet_do_not_hinder_the_declaration() -> None:
    code = """
from perdure.flow.step import step
@step
async def late(order: "Order", n: int): return order
class Order: ...
try:
    late.bind({"order": {}, "n": 1})
except Exception as error:
    print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "InvalidRequest\n", "")
