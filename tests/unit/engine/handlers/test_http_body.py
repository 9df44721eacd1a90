"""Bodies of answers: bounded while they unfold, decoded by their type, never guessed silently."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.handlers.http_body import TooLarge, Unpacker, decoded, read_body, read_start
from perdure.model.errors import Failure


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def body(data: bytes, encoding: str = "", most: int = 10_000, size: int = 7) -> bytes:
    return asyncio.run(read_body(pieces(data, size), encoding, most))


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    " deflate ": bare,
}


@given(st.binary(max_size=2000), st.sampled_from(sorted(PACKED)), st.integers(1, 50))
def test_a_body_arrives_whole_however_packed_and_cut(data: bytes, how: str, size: int) -> None:
    assert body(PACKED[how](data), how, 2000, size) == data


@pytest.mark.parametrize("how", sorted(PACKED))
def test_the_limit_is_exact_and_counts_what_is_unpacked(how: str) -> None:
    assert body(PACKED[how](b"a" * 500), how, 500) == b"a" * 500
    with pytest.raises(TooLarge):
        body(PACKED[how](b"a" * 501), how, 500)


def test_a_bomb_is_stopped_before_it_unfolds() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    unpacker = Unpacker("gzip")
    with pytest.raises(TooLarge):
        unpacker.unpack(bomb, 1000)


def test_gzip_of_several_members_is_one_body() -> None:
    assert body(gzip.compress(b"one ") + gzip.compress(b"two"), "gzip") == b"one two"


@pytest.mark.parametrize(
    ("data", "encoding", "said"),
    [
        (b"plain text", "gzip", "not the gzip it says"),
        (gzip.compress(b"x" * 99, mtime=0)[:-4], "gzip", "ends in the middle"),
        (b"xx", "br", "packed as 'br'"),
        (b"xx", "gzip, gzip", "packed as"),
    ],
)
def test_what_cannot_be_unpacked_is_a_failure(data: bytes, encoding: str, said: str) -> None:
    with pytest.raises(Failure, match=said) as error:
        body(data, encoding)
    assert (error.value.kind, error.value.permanent) == ("http-body", False)


@pytest.mark.parametrize(
    ("data", "encoding", "start"),
    [
        (b"abcdefghij", "", b"abcde"),
        (gzip.compress(b"abcdefghij", mtime=0), "gzip", b"abcde"),
        (gzip.compress(b"abc", mtime=0), "gzip", b"abc"),
        (b"no gzip", "gzip", b""),
        (b"", "gzip", b""),
    ],
)
def test_the_start_of_a_body_is_read_whatever_the_rest_is(
    data: bytes, encoding: str, start: bytes
) -> None:
    assert asyncio.run(read_start(pieces(data, 3), encoding, 5)) == start


def test_what_follows_a_packed_start_is_not_waited_for() -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield gzip.compress(b"abc")
        yield b"more"
        raise AssertionError("read on")

    assert asyncio.run(read_start(endless(), "gzip", 5)) == b"abc"


@pytest.mark.parametrize(
    ("data", "content_type", "value"),
    [
        (b'{"a": [1, 2.5, null]}', "application/json", {"a": [1, 2.5, None]}),
        (b"{}", "Application/JSON; charset=utf-8", {}),
        (b"1", "application/problem+json", 1),
        (b"\xef\xbb\xbf[]", "application/json", []),
        ('"é"'.encode("utf-16"), "application/json; charset=utf-16", "é"),
        (b"", "application/json", None),
        (b"null", "application/json", None),
        (b"", "text/plain", ""),
        ("é".encode(), "text/plain", "é"),
        ("é".encode("latin-1"), "text/html", "é"),
        ("é".encode("latin-1"), "text/plain; charset=iso-8859-1", "é"),
        (b"<a/>", "application/xml", "<a/>"),
        (b"<a/>", "image/svg+xml", "<a/>"),
        (b"a=b", "application/x-www-form-urlencoded", "a=b"),
        (b"text", "", "text"),
        (b"{}", "", "{}"),
        (b"{}", "nonsense", "{}"),
    ],
)
def test_a_body_is_its_json_value_or_its_text(data: bytes, content_type: str, value: Any) -> None:
    assert decoded(data, content_type) == (value, False)


@pytest.mark.parametrize(
    ("data", "content_type"),
    [(b"\x00\xff", "image/png"), (b"ab", "application/octet-stream"), (b"\xff", "")],
)
def test_anything_else_is_base64_and_says_so(data: bytes, content_type: str) -> None:
    import base64

    assert decoded(data, content_type) == (base64.b64encode(data).decode(), True)


@pytest.mark.parametrize(
    ("data", "content_type", "said"),
    [
        (b"<html>", "application/json", "says it is JSON and is not"),
        (b"NaN", "application/json", "says it is JSON and is not"),
        (b'"\xff"', "application/json", "says it is JSON and is not"),
        (b'"\xff"', "application/json; charset=utf-16", "not in 'utf-16'"),
        (b"[" * 100_000, "application/json", "JSON"),
        (b"\xff", "text/plain; charset=utf-8", "not in 'utf-8'"),
        (b"a", "text/plain; charset=martian", "not in 'martian'"),
        (b"a", "text/plain; charset=base64", "not in 'base64'"),
        (b"a", "text/plain; charset=rot13", "not in 'rot13'"),
    ],
)
def test_a_body_that_is_not_what_it_says_is_a_failure(
    data: bytes, content_type: str, said: str
) -> None:
    with pytest.raises(Failure, match=said) as error:
        decoded(data, content_type)
    assert error.value.kind == "http-body"
