"""Typed values: JSON text to and from the types that workflows, steps and signals are annotated
with. Each type's reader is compiled once.

What code sees is always what was recorded, read back: also on the first run, so that a replay
sees the same (scenario 15).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw

from perdure.codec.values import JsonCodec
from perdure.flow.binding import from_json, whole_numbers
from perdure.model.errors import InvalidRequest

Reader = Callable[[Raw], Any]

_CODEC: Final = JsonCodec()
_ABSENT: Final = Raw(b"null")


def reader(kind: Any, what: str) -> Reader:
    """Reads values of this type; None = JSON's own types. `what` names the value in errors.

    The reader raises InvalidRequest with the path of the field that does not fit.
    """
    if kind is None:
        return _CODEC.decode
    decoder = msgspec.json.Decoder(kind, dec_hook=from_json)
    decode = decoder.decode

    def read(data: Raw) -> Any:
        try:
            return decode(data)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            try:
                # JSON has one kind of number: an `int` takes 2.0 too.
                plain = whole_numbers(_CODEC.decode(data))
                return msgspec.convert(plain, kind, str_keys=True, dec_hook=from_json)
            except Exception:
                raise InvalidRequest(f"{what}: {error}") from None

    return read


def text_of(value: Any) -> Raw:
    """A value as JSON text. Raises InvalidRequest naming the path of what JSON cannot hold."""
    return Raw(_CODEC.encode(value))


def or_null(data: Raw | None) -> Raw:
    """A value that was not given is null."""
    return _ABSENT if data is None else data
