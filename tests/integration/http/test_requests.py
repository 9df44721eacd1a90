"""HTTP nodes against real servers: what arrives there and what comes back."""

from __future__ import annotations

import asyncio
import base64
import gzip
from typing import Any

import pytest
from aiohttp import web

from perdure.engine.handlers.port import Handler
from perdure.model.errors import Failure
from tests.integration.http.servers import handling, once, send, serving, talking


async def echo(request: web.Request) -> web.Response:
    return web.json_response(
        {
            "method": request.method,
            "path": request.raw_path,
            "headers": {k.lower(): v for k, v in request.headers.items()},
            "body": (await request.read()).decode(),
        }
    )


def echoed(path: str = "/", **spec: Any) -> Any:
    async def main() -> Any:
        async with serving(echo) as base:
            return (await once({"url": base + path, **spec}))["body"]

    return asyncio.run(main())


def answered(response: web.Response, **spec: Any) -> dict[str, Any]:
    async def answer(_: web.Request) -> web.Response:
        return response

    async def main() -> dict[str, Any]:
        async with serving(answer) as base:
            return await once({"url": base, **spec})

    return asyncio.run(main())


def failed(response: web.Response, **spec: Any) -> Failure:
    with pytest.raises(Failure) as error:
        answered(response, **spec)
    return error.value


def test_a_get_carries_its_query_headers_and_idempotency_key_and_no_body() -> None:
    seen = echoed("/a%2Fb?x=1", query={"q": ["a b", 2]}, headers={"X-Mine": "yes"})
    assert (seen["method"], seen["path"], seen["body"]) == ("GET", "/a%2Fb?x=1&q=a%20b&q=2", "")
    assert seen["headers"]["x-mine"] == "yes"
    assert seen["headers"]["idempotency-key"] == "task-1"
    assert seen["headers"]["user-agent"] == "perdure"
    assert "content-type" not in seen["headers"]


def test_a_post_carries_json_or_text() -> None:
    seen = echoed(method="POST", json={"n": 1})
    assert (seen["method"], seen["body"]) == ("POST", '{"n":1}')
    assert seen["headers"]["content-type"] == "application/json"
    seen = echoed(method="PUT", body="né", headers={"Content-Type": "text/csv"})
    assert (seen["body"], seen["headers"]["content-type"]) == ("né", "text/csv")


def test_a_large_body_arrives_whole() -> None:
    seen = echoed(method="POST", body="x" * 3_000_000)
    assert len(seen["body"]) == int(seen["headers"]["content-length"]) == 3_000_000


def test_output_is_status_headers_and_the_value_of_a_json_body() -> None:
    output = answered(web.json_response({"ok": [1]}, status=201, headers={"X-Two": "2"}))
    assert set(output) == {"status", "headers", "body"}
    assert (output["status"], output["body"]) == (201, {"ok": [1]})
    assert output["headers"]["x-two"] == "2"
    assert output["headers"]["content-type"].startswith("application/json")


def test_repeated_headers_are_joined() -> None:
    response = web.Response(text="x")
    response.headers.add("Link", "<a>")
    response.headers.add("Link", "<b>")
    assert answered(response)["headers"]["link"] == "<a>, <b>"


def test_text_binary_and_empty_bodies() -> None:
    assert answered(web.Response(text="hé"))["body"] == "hé"
    png = answered(web.Response(body=b"\x89PNG\x00", content_type="image/png"))
    assert (png["encoding"], base64.b64decode(png["body"])) == ("base64", b"\x89PNG\x00")
    empty = answered(web.Response(status=204))
    assert (empty["status"], empty["body"]) == (204, "")
    head = answered(web.json_response({"a": 1}), method="HEAD")
    assert (head["status"], head["body"]) == (200, None)


def test_a_compressed_body_is_unpacked() -> None:
    packed = gzip.compress(b'{"a": 1}')
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    assert answered(web.Response(body=packed, headers=headers))["body"] == {"a": 1}


def test_headers_beyond_unicode_come_as_latin_1() -> None:
    async def main() -> dict[str, Any]:
        head = b"HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nContent-Length: 0\r\n\r\n"
        async with talking(head) as (base, _):
            return await once({"url": base})

    assert asyncio.run(main())["headers"]["x-name"] == "café"


# -------------------------------------------------------------------------------------- statuses


@pytest.mark.parametrize(
    ("status", "permanent"),
    [
        (301, True), (304, True), (400, True), (401, True), (404, True), (422, True), (501, True),
        (409, True), (423, True), (408, False), (425, False), (429, False), (500, False),
        (502, False), (503, False),
    ],
)  # fmt: skip
def test_an_unexpected_status_fails_and_says_whether_time_may_heal_it(
    status: int, permanent: bool
) -> None:
    failure = failed(web.Response(status=status, text="" if status == 304 else "why"))
    assert (failure.kind, failure.permanent) == ("http-status", permanent)
    assert str(failure).startswith("GET http://127.0.0.1:")
    assert f"unexpected status {status} " in str(failure)
    assert failure.details == {"status": status, "body": "" if status == 304 else "why"}


def test_expected_statuses_are_successes_and_others_not() -> None:
    assert answered(web.Response(status=404, text="none"), expect=[200, 404])["status"] == 404
    assert failed(web.Response(text="x"), expect=[404]).kind == "http-status"


def test_a_redirect_is_not_followed() -> None:
    response = web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"})
    output = answered(response, expect="3xx")
    assert output["headers"]["location"] == "http://127.0.0.1:9/"


def test_an_unexpected_answer_shows_its_first_2_kib() -> None:
    long = "é" * 20_000
    details: Any = failed(web.Response(status=500, text=long)).details
    assert details["body"] == "é" * 1024
    packed = web.Response(
        status=500, body=gzip.compress(long.encode()), headers={"Content-Encoding": "gzip"}
    )
    details = failed(packed).details
    assert details["body"] == "é" * 1024


def test_a_secret_that_an_answer_repeats_is_hidden_before_the_answer_is_cut() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=400, text="z" * 2040 + "hunter2-hunter2" + "z" * 3000)

    async def main() -> Any:
        async with serving(answer) as base:
            redact = lambda text: text.replace("hunter2-hunter2", "***")
            await once({"url": base}, redact=redact)

    with pytest.raises(Failure) as error:
        asyncio.run(main())
    assert error.value.details["body"] == "z" * 2040 + "***zzzzz"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7), ("0", 0), ("soon", None), ("-1", None), ("9" * 30, None),
        ("Wed, 21 Oct 2015 07:30:00 GMT", 90),
    ],
)  # fmt: skip
def test_retry_after_sets_the_next_delay(said: str, seconds: int | None) -> None:
    headers = {"Retry-After": said, "Date": "Wed, 21 Oct 2015 07:28:30 GMT"}
    failure = failed(web.Response(status=503, headers=headers))
    assert failure.retry_after == seconds


# --------------------------------------------------------------------------------------- trouble


def test_an_answer_over_the_limit_is_a_permanent_failure() -> None:
    assert answered(web.Response(text="x" * 100), max_size=100)["body"] == "x" * 100
    failure = failed(web.Response(text="x" * 101), max_size=100)
    assert (failure.kind, failure.permanent) == ("http-too-large", True)
    assert failure.details == {"status": 200}


def test_a_node_cannot_raise_the_engine_s_limit() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(bytes(10**6)), headers={"Content-Encoding": "gzip"})

    async def main() -> None:
        async with serving(answer) as base:
            await once({"url": base, "max_size": 10**9}, max_size=1000)

    with pytest.raises(Failure) as error:
        asyncio.run(main())
    assert error.value.kind == "http-too-large"


def test_a_body_that_is_not_the_json_it_says_is_a_failure() -> None:
    failure = failed(web.Response(text="<html>", content_type="application/json"))
    assert (failure.kind, failure.permanent) == ("http-body", False)
    assert str(failure).startswith("GET http://127.0.0.1:")
    assert failure.details == {"status": 200}


def raw(*parts: bytes) -> Failure:
    async def main() -> None:
        async with talking(*parts) as (base, _):
            await once({"url": base, "method": "POST"})

    with pytest.raises(Failure) as error:
        asyncio.run(main())
    assert not error.value.permanent
    return error.value


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ((), "http-connect"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",), "http-connect"),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",), "http-connect"),
        ((b"not http at all\r\n\r\n",), "http-body"),
        ((b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",), "http-body"),
    ],
)
def test_an_answer_that_breaks_off_or_is_not_http_is_a_failure(
    parts: tuple[bytes, ...], kind: str
) -> None:
    assert raw(*parts).kind == kind


def test_a_refused_connection_and_an_unknown_name_are_failures_to_connect() -> None:
    async def main(url: str) -> None:
        await once({"url": url})

    for url, there in (
        ("http://127.0.0.1:1/", "127.0.0.1:1: Connection refused"),
        ("http://no-such-name.invalid/", "no-such-name.invalid:80: "),
    ):
        with pytest.raises(Failure) as error:
            asyncio.run(main(url))
        assert (error.value.kind, error.value.permanent) == ("http-connect", False)
        assert str(error.value).startswith(f"GET {url}: no connection to {there}")


@pytest.mark.rule("D-30")
@pytest.mark.slow
@pytest.mark.parametrize("parts", [(), (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",)])
def test_a_server_that_does_not_finish_in_time_is_a_timeout(parts: tuple[bytes, ...]) -> None:
    async def main(spec: dict[str, Any], limit: int | None) -> None:
        async with talking(*parts, hold=True) as (base, _):
            await once({"url": base, **spec}, limit)

    for spec, limit in (({"timeout": "50ms"}, None), ({"timeout": "1h"}, 50_000)):
        with pytest.raises(Failure, match=r"took over 0\.05 s") as error:
            asyncio.run(main(spec, limit))
        assert (error.value.kind, error.value.permanent) == ("http-timeout", False)


def test_a_cancelled_request_is_cancelled_and_its_connection_closed() -> None:
    async def main() -> None:
        async with talking(hold=True) as (base, heads), handling() as handler:
            task = asyncio.create_task(send(handler, {"url": base}))
            while not heads:  # noqa: ASYNC110  # the request's arrival, seen without a clock
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

    asyncio.run(main())


@pytest.mark.rule("D-30")
def test_the_time_of_an_attempt_is_the_node_s_then_the_spec_s_then_30_s() -> None:
    from perdure.engine.handlers.http import GRACE, HttpHandler
    from perdure.engine.handlers.port import Attempt

    handler: Handler = HttpHandler()

    def limit(spec: Any, timeout: int | None = None) -> int:
        return handler.timeout(Attempt("w", "r", "n", "HTTP", "t", 0, spec, timeout))

    assert limit({}) == limit(None) == limit({"timeout": "soon"}) == 30_000_000 + GRACE
    assert limit({"timeout": "5s"}) == 5_000_000 + GRACE
    assert limit({"timeout": "5s"}, 7) == 7 + GRACE
    assert limit({"timeout": "5s"}, 0) == 0


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({"url": "ftp://a/"}, "http-url"),
        ({"url": "http://a/", "headers": {"A": "b\r\nC: d"}}, "http-request"),
        ({"url": "http://a/", "timeout": "soon"}, "http-request"),
        (None, "http-request"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused_before_sending(spec: Any, kind: str) -> None:
    with pytest.raises(Failure) as error:
        asyncio.run(once(spec))
    assert (error.value.kind, error.value.permanent) == (kind, True)
