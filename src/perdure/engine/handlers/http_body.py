"""Reading an answer's body: bounded while it arrives, also inside compression.

Unpacked here and not by the client, so that no small answer can unfold into a large memory. JSON
becomes its value, text its text, anything else base64.
"""

from __future__ import annotations

import base64
import codecs
import zlib
from collections.abc import AsyncIterator
from email.message import Message
from typing import Any, Final

import msgspec

from perdure.model.errors import Failure

_TEXT_TYPES: Final = frozenset(
    {
        *("application/xml", "application/javascript", "application/x-ndjson"),
        *("application/x-www-form-urlencoded", "application/yaml", "application/graphql"),
    }
)


class TooLarge(Exception):
    """The body is over the limit."""


class Unpacker:
    """Undoes `gzip` and `deflate`, never giving more than it is asked for."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._inner: Any = None

    def unpack(self, data: bytes, most: int) -> bytes:
        """The bytes in `data`. Raises TooLarge over `most` of them, zlib.error on garbage."""
        out = bytearray()
        while data:
            if self._inner is None:
                self._inner = zlib.decompressobj(_window(self._encoding, data))
            out += self._inner.decompress(data, most + 1 - len(out))
            if len(out) > most:
                raise TooLarge
            data = self._inner.unconsumed_tail
            if self._inner.eof:
                data, self._inner = self._inner.unused_data, None
        return bytes(out)

    @property
    def complete(self) -> bool:
        """Whether what was unpacked so far is a whole."""
        return self._inner is None


def _window(encoding: str, start: bytes) -> int:
    if encoding == "gzip":
        return 16 + zlib.MAX_WBITS
    # "deflate" should be zlib's format; some servers send it bare.
    return zlib.MAX_WBITS if start[0] & 0x0F == 8 else -zlib.MAX_WBITS


async def read_body(chunks: AsyncIterator[bytes], encoding: str, most: int) -> bytes:
    """The whole body, unpacked. Raises TooLarge, or Failure of kind http-body."""
    encoding = encoding.strip().lower()
    encoding = {"x-gzip": "gzip", "identity": ""}.get(encoding, encoding)
    if encoding not in ("", "gzip", "deflate"):
        raise Failure(f"the answer is packed as {encoding!r}, not asked for", kind="http-body")
    unpacker = Unpacker(encoding) if encoding else None
    body = bytearray()
    async for chunk in chunks:
        if unpacker is None:
            if len(body) + len(chunk) > most:
                raise TooLarge
            body += chunk
            continue
        try:
            body += unpacker.unpack(chunk, most - len(body))
        except zlib.error:
            raise Failure(f"the answer is not the {encoding} it says", kind="http-body") from None
    if unpacker is not None and not unpacker.complete:
        raise Failure(f"the answer's {encoding} ends in the middle", kind="http-body")
    return bytes(body)


async def read_start(chunks: AsyncIterator[bytes], encoding: str, most: int) -> bytes:
    """The first bytes of a body that is only to be shown, whatever is wrong with the rest."""
    packed = encoding in ("gzip", "deflate")
    unpacking: Any = None
    body = bytearray()
    async for chunk in chunks:
        if packed and unpacking is None:
            unpacking = zlib.decompressobj(_window(encoding, chunk))
        try:
            body += unpacking.decompress(chunk, most) if packed else chunk
        except zlib.error:
            break
        if len(body) >= most or (packed and unpacking.eof):
            break
    return bytes(body[:most])


def decoded(body: bytes, content_type: str) -> tuple[Any, bool]:
    """The body as a JSON value, and whether it is base64 of what is neither JSON nor text.

    Raises Failure of kind http-body for what is not what its type says.
    """
    kind, charset = read_content_type(content_type)
    if kind == "application/json" or kind.endswith("+json"):
        return (_json(body, charset) if body else None), False
    if kind.startswith("text/") or kind.endswith("+xml") or kind in _TEXT_TYPES or charset:
        return _text(body, charset), False
    if not kind:
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True


def read_content_type(header: str) -> tuple[str, str]:
    """Type and charset, both lower case; empty where the header does not say."""
    if not header:
        return "", ""
    message = Message()
    message["content-type"] = header
    # A value that is not a type reads as text/plain; then the header says nothing.
    kind = message.get_content_type() if "/" in header else ""
    charset = message.get_param("charset", "")
    return kind, charset.lower() if isinstance(charset, str) else ""


def _json(body: bytes, charset: str) -> Any:
    text: bytes | str = body.removeprefix(codecs.BOM_UTF8)
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        text = _text(body, charset)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Failure(f"the answer says it is JSON and is not: {error}", kind="http-body") from None
    except RecursionError:
        raise Failure("the answer's JSON is nested too deeply", kind="http-body") from None


def _text(body: bytes, charset: str) -> str:
    if not charset:
        try:
            return body.removeprefix(codecs.BOM_UTF8).decode()
        except UnicodeDecodeError:
            return body.decode("latin-1")  # what HTTP meant by text without a charset
    try:
        return codecs.decode(body, charset)
    except (LookupError, ValueError, TypeError):
        raise Failure(f"the answer's text is not in {charset!r}", kind="http-body") from None
