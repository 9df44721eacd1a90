"""The envelope {"v": …}: the stored form of values of the typed doors (D-27).

Graphs store plain JSON, typed doors store envelopes, and each row knows which it holds. Where a
value crosses from one to the other, `wrap` and `unwrap` convert; nothing is guessed from how the
bytes look, since a graph's plain value may well be an object with one field "v".
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from perdure.kernel.protocol import Codec
from perdure.model.errors import InvalidRequest


class _Envelope(msgspec.Struct):
    v: Raw


_decode = msgspec.json.Decoder(_Envelope).decode


def seal(value: Any, codec: Codec) -> bytes:
    """The value in an envelope. Raises what the codec raises."""
    return wrap(codec.encode(value))


def unseal(data: bytes | Raw, codec: Codec, default: Any = None) -> Any:
    """The value in an envelope; `default` for no data at all. null is a value.

    Raises InvalidRequest when the data is not an envelope.
    """
    return codec.decode(unwrap(data)) if memoryview(data) else default


def wrap(plain: bytes | Raw) -> bytes:
    """Plain JSON into an envelope; no bytes mean null."""
    return b'{"v":%b}' % (bytes(plain) or b"null")


def unwrap(data: bytes | Raw) -> Raw:
    """The plain JSON in an envelope, as bytes of its own. Raises InvalidRequest."""
    try:
        return _decode(data).v.copy()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f'not an envelope of the form {{"v": …}}: {error}') from error
