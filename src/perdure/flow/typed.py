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
from perdure.flow.binding import whole_numbers
from perdure.flow.shapes import convert, fault, from_json, readable
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
    readable_kind = readable(kind)
    decode = msgspec.json.Decoder(readable_kind, dec_hook=from_json).decode

    def read(data: Raw) -> Any:
        try:
            return decode(data)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            try:
                # JSON has one kind of number: an `int` takes 2.0 too.
                return convert(whole_numbers(_CODEC.decode(data)), readable_kind)
            except Exception:
                raise InvalidRequest(f"{what}: {fault(error)}") from None

    # For codecs of users, which read by type (perdure.flow.codec).
    vars(read).update(kind=kind, what=what)
    return read


def or_null(data: Raw | None) -> Raw:
    """A value that was not given is null."""
    return _ABSENT if data is None else data
