"""A codec that encrypts: what workflows record can be read with the key only.

AES-SIV gives the same text for the same value. That is what a replay needs, which is held against
what was recorded; of two equal values it can be seen that they are equal, and nothing else.
"""

from __future__ import annotations

import base64
import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from perdure import Codec, Context, Signal, step, workflow


class Encrypted(Codec):
    """`"enc1:…"` in place of every value. Give clients and workers the same key."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(key)

    def encode(self, value: object, /) -> bytes:
        sealed = self._cipher.encrypt(super().encode(value), None)
        return b'"enc1:%s"' % base64.b64encode(sealed)

    def decode(self, data: bytes, type: Any, /) -> Any:
        if not data.startswith(b'"enc1:'):
            raise ValueError("the value is not encrypted: whoever sent it has no codec")
        try:
            plain = self._cipher.decrypt(base64.b64decode(data[6:-1]), None)
        except InvalidTag:
            raise ValueError("the value was encrypted with another key") from None
        return super().decode(plain, type)


def codec() -> Encrypted:
    """With the key of the environment: 64 bytes in base64, as `key()` makes them."""
    return Encrypted(base64.b64decode(os.environ["CARD_KEY"]))


def key() -> str:
    """A new key, for the environment."""
    return base64.b64encode(AESSIV.generate_key(512)).decode()


confirmed = Signal("confirmed", str)


@step(retry=3)
async def charge(card: str, cents: int) -> str:
    return f"charged {cents} to the card that ends in {card[-4:]}"


@workflow(max_duration="1d")
async def buy(ctx: Context, card: str) -> str:
    receipt = await charge(card, 995)
    who = await ctx.wait(confirmed)
    return f"{receipt}, confirmed by {who}"
