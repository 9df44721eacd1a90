"""JSON values: what goes in comes out, and what JSON would change is refused with its path."""

from __future__ import annotations

import dataclasses
import enum
import math
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from perdure.codec.values import DEPTH_LIMIT, PAYLOAD_LIMIT, JsonCodec
from perdure.engine.handlers.port import Attempt
from perdure.model.errors import InvalidRequest, PayloadTooLarge
from perdure.model.step_context import StepContext

CODEC = JsonCodec()
INTEGERS = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | INTEGERS | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@dataclasses.dataclass
class Price:
    amount: Any
    currency: str = "EUR"


class Order(msgspec.Struct):
    id: int
    price: Any = msgspec.UNSET


class Slotted:
    __slots__ = ()


class Text(str):
    __slots__ = ()


class Level(enum.IntEnum):
    HIGH = 1


class Odd(enum.Enum):
    NAN = math.nan


def refused(value: object) -> str:
    with pytest.raises(InvalidRequest) as caught:
        CODEC.encode(value)
    return str(caught.value)


@given(PLAIN)
def test_every_plain_value_comes_back_the_same(value: object) -> None:
    assert CODEC.decode(CODEC.encode(value)) == value


@given(PLAIN)
def test_falsy_values_keep_their_types(value: object) -> None:
    # scenario 110
    back = CODEC.decode(CODEC.encode([value, 0, "", [], {}, False, None, 0.0]))
    assert [type(item) for item in back[1:]] == [int, str, list, dict, bool, type(None), float]
    assert type(back[0]) is type(value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, "$"),
        ([1, {"a": math.inf}], "$[1].a"),
        ({"no null": None, "b": (-math.inf,)}, "$.b[0]"),
        (Price(math.nan), "$.amount"),
        ({"o": Order(1, {"x y": math.nan})}, "$.o.price['x y']"),
        ([Odd.NAN], "$[0]"),
    ],
    ids=str,
)
def test_what_is_not_finite_is_refused_with_its_path(value: object, path: str) -> None:
    message = refused(value)
    assert message.startswith(f"value at {path} is ")
    assert "NaN or infinity" in message


@pytest.mark.rule("D-28")
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 10**40])
def test_integers_beyond_64_bits_are_refused_with_their_path(number: int) -> None:
    assert refused({"items": [{"n": number}]}).startswith("value at $.items[0].n is an integer")


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 10**18, "9" * 40, {"9" * 30: 1}, 1e300])
def test_what_only_looks_like_a_huge_integer_passes(value: object) -> None:
    assert CODEC.decode(CODEC.encode(value)) == value


@pytest.mark.parametrize(
    "value", ["\ud800", {"a": "x\udfff"}, [{"\ud800": 1}]], ids=["text", "inside", "key"]
)
def test_lone_surrogates_are_refused(value: object) -> None:
    assert "lone surrogate" in refused(value)


@pytest.mark.parametrize("key", [1, -1, 2.5, True, None, (1, 2), Level.HIGH, 10**30], ids=repr)
def test_keys_that_are_not_text_are_refused(key: object) -> None:
    message = refused({"rates": {"1": 0, key: "x"}})
    assert message.startswith("value at $.rates has the key")
    assert "keys of JSON objects are text" in message


@pytest.mark.parametrize("key", ["1", "-1", "2.5", "1e5", '1":', '\\"1', "null"])
def test_text_that_looks_like_another_key_passes(key: str) -> None:
    assert CODEC.decode(CODEC.encode({key: key})) == {key: key}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [Slotted()]}, "value at $.a[0] is of type test_values.Slotted"),
        ([lambda: 0], "value at $[0] is of type function"),
        ({"f": Text("x")}, "value at $.f is of type test_values.Text: convert it"),
        (
            {"step": StepContext(Attempt("w", "r", "n", "TASK", "t", 0, object()))},
            "value at $.step is of type perdure.model.step_context.StepContext: use",
        ),
    ],
    ids=["object", "function", "subclass", "attempt"],
)
def test_what_cannot_be_encoded_is_named_with_type_and_path(value: object, said: str) -> None:
    assert said.replace("test_values", __name__) in refused(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert "contains itself" in refused(loop)


def test_types_with_one_form_in_json_are_taken() -> None:
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC)
    id = uuid.UUID(int=7)
    value = {
        "at": moment,
        "id": id,
        "d": Decimal("1.50"),
        "p": Price(3),
        "l": Level.HIGH,
        "n": None,
    }
    assert CODEC.decode(CODEC.encode(value)) == {
        "at": "2024-05-01T12:00:00Z",
        "id": str(id),
        "d": "1.50",
        "p": {"amount": 3, "currency": "EUR"},
        "l": 1,
        "n": None,
    }


@pytest.mark.rule("W-46")
def test_the_codec_keeps_nothing_between_calls() -> None:
    assert not hasattr(CODEC, "__dict__")


def test_a_value_over_the_limit_is_refused_with_size_and_advice() -> None:
    # scenario 112
    CODEC.encode("x" * (PAYLOAD_LIMIT - 2))
    with pytest.raises(PayloadTooLarge, match=r"4,194,305 bytes.*4,194,304.*pass a reference"):
        CODEC.encode("x" * (PAYLOAD_LIMIT - 1))


@pytest.mark.parametrize("data", [b"", b"{", b"NaN", b"\xff", b'"\xff"', b'"\\ud800"', b"1 2"])
def test_what_is_not_json_is_an_invalid_request(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not valid JSON"):
        CODEC.decode(data)


def test_json_nested_without_end_is_an_invalid_request() -> None:
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        CODEC.decode(b"[" * 100_000)


def nested(levels: int) -> Any:
    value: Any = "[{" * 400  # brackets in text are no levels
    for level in range(levels):
        value = [value] if level % 2 else {"[": value}
    return value


def test_a_value_is_nested_five_hundred_deep_at_most_however_much_python_could_take() -> None:
    CODEC.decode(CODEC.encode(nested(DEPTH_LIMIT)))
    CODEC.encode([[1], {"a": 2}] * 1000)
    with pytest.raises(InvalidRequest, match="nested too deeply \\(over 500 levels\\)"):
        CODEC.encode(nested(DEPTH_LIMIT + 1))


def test_raw_json_is_taken_as_it_is() -> None:
    assert CODEC.encode({"a": Raw(b"[1, null]")}) == b'{"a":[1, null]}'
    assert CODEC.decode(Raw(b"[1, null]")) == [1, None]
