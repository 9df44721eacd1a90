"""Envelopes: one form for typed values, never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec import Raw

from perdure.codec.envelope import seal, unseal, unwrap, wrap
from perdure.codec.values import JsonCodec
from perdure.kernel.protocol import Codec
from perdure.model.errors import InvalidRequest
from tests.unit.codec.test_values import PLAIN

CODEC: Codec = JsonCodec()


class Silent:
    """A codec that writes nothing."""

    def encode(self, value: object, /) -> bytes:
        return b""

    def decode(self, data: bytes | Raw, /) -> object:
        return bytes(data)


@pytest.mark.rule("W-44")
@given(PLAIN)
def test_a_value_travels_in_an_envelope_and_comes_back(value: object) -> None:
    sealed = seal(value, CODEC)
    assert CODEC.decode(sealed) == {"v": value}
    assert unseal(sealed, CODEC) == value


@pytest.mark.rule("W-44")
def test_a_codec_that_writes_nothing_means_null() -> None:
    assert seal(1, Silent()) == b'{"v":null}'


@pytest.mark.rule("W-44")
def test_the_bytes_taken_out_are_their_own() -> None:
    data = bytearray(b'{"v":[1,2]}')
    inner = unwrap(bytes(data))
    data[:] = b"x" * len(data)
    assert bytes(inner) == b"[1,2]"


@pytest.mark.rule("W-45")
def test_no_data_leaves_the_default() -> None:
    assert unseal(b"", CODEC, default="untouched") == "untouched"


@pytest.mark.rule("W-45")
@pytest.mark.parametrize("data", [b'{"v":null}', b' { "v" :\n null } '])
def test_null_is_a_value(data: bytes) -> None:
    assert unseal(data, CODEC, default="untouched") is None


@pytest.mark.rule("W-45")
@pytest.mark.parametrize("data", [b"1", b'{"w":1}', b"[]", b"{}", b'{"v":1', b'{"v":1}x', b"null"])
def test_what_is_no_envelope_is_an_error(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not an envelope"):
        unseal(data, CODEC)


@pytest.mark.rule("D-27")
@given(PLAIN)
def test_crossing_a_border_converts_and_guesses_nothing(value: object) -> None:
    plain = CODEC.encode({"v": value})
    # A plain object that looks like an envelope stays what it is.
    assert unwrap(wrap(plain)) == Raw(plain)
    assert CODEC.decode(unwrap(wrap(plain))) == {"v": value}
