"""Base64, both ways. Decoding accepts a text without its padding."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from perdure.expr.budget import Env, take_size
from perdure.expr.errors import Fault
from perdure.expr.functions.function import of


def encode(env: Env, data: Any) -> Any:
    """base64.encode(): bytes to text."""
    if type(data) is not bytes:
        return NotImplemented
    take_size(env, len(data) * 4 // 3 + 4)
    return base64.b64encode(data).decode()


def decode(env: Env, text: Any) -> Any:
    """base64.decode(): text to bytes."""
    if type(text) is not str:
        return NotImplemented
    take_size(env, len(text))
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Fault("this string is not base64") from None


PLAIN = {
    "base64.encode": of(encode, 1, metered=True),
    "base64.decode": of(decode, 1, metered=True),
}
METHODS: dict[str, Any] = {}
