"""HTTP specs and URLs: what is sent is what was checked, and the rest is refused before sending."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.handlers.http_spec import Request, read_spec, read_timeout
from perdure.engine.handlers.http_url import Target, read_url
from perdure.model.errors import Failure

yarl = pytest.importorskip("yarl", reason="the extra http is not installed")
URL = yarl.URL


def read(**spec: Any) -> Request:
    return read_spec({"url": "https://shop.example/api", **spec}, "task-1")


def refusal(call: Any, *args: Any, **named: Any) -> Failure:
    with pytest.raises(Failure) as error:
        call(*args, **named)
    assert error.value.permanent
    return error.value


def test_a_bare_url_is_a_get_with_an_idempotency_key_that_expects_success() -> None:
    request = read()
    assert (request.method, request.body, request.max_size) == ("GET", None, None)
    assert request.headers == {"Idempotency-Key": "task-1"}
    assert request.expect == frozenset(range(200, 300))


def test_the_spec_s_own_idempotency_key_stands() -> None:
    assert read(headers={"idempotency-key": "mine"}).headers == {"idempotency-key": "mine"}


def test_a_json_body_is_encoded_and_named() -> None:
    request = read(method="post", json={"n": 1, "none": None})
    assert (request.method, request.body) == ("POST", b'{"n":1,"none":null}')
    assert request.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("value", [None, 0, "", [], False])
def test_falsy_json_is_a_body(value: Any) -> None:
    # scenario 110
    assert read(json=value).body in (b"null", b"0", b'""', b"[]", b"false")


def test_a_text_body_is_utf_8_and_a_content_type_given_stands() -> None:
    request = read(body="né", headers={"content-type": "text/csv"})
    assert request.body == "né".encode()
    assert request.headers == {"content-type": "text/csv", "Idempotency-Key": "task-1"}
    assert read(body="").headers["Content-Type"] == "text/plain; charset=utf-8"


def test_numbers_are_fine_in_headers_and_queries() -> None:
    request = read(headers={"X-N": 5}, query={"a": 1.0, "b": [True, "x y"], "c": None, "d": 1.5})
    assert request.headers["X-N"] == "5"
    assert request.target.url == "https://shop.example/api?a=1&b=true&b=x%20y&d=1.5"


@pytest.mark.parametrize(
    ("expect", "statuses"),
    [(404, {404}), ([200, 404.0], {200, 404}), ("3xx", set(range(300, 400)))],
)
def test_expected_statuses_are_numbers_and_classes(expect: Any, statuses: set[int]) -> None:
    assert read(expect=expect).expect == statuses


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"method": "BREW"}, "method 'BREW'"),
        ({"method": 5}, "method 5"),
        ({"headers": ["a"]}, "headers are an array"),
        ({"headers": {"X-A": "a\r\nX-Evil: b"}}, "header X-A holds a line break"),
        ({"headers": {"X-A": "a\nb"}}, "header X-A holds a line break"),
        ({"headers": {"X-A": "a\x00b"}}, "header X-A holds a line break"),
        ({"headers": {"X-A": "\ud800"}}, "header X-A holds"),
        ({"headers": {"X A": "a"}}, "'X A' cannot be the name of a header"),
        ({"headers": {"X-A:": "a"}}, "cannot be the name"),
        ({"headers": {"": "a"}}, "cannot be the name"),
        ({"headers": {"X-A": None}}, "header X-A is null"),
        ({"headers": {"X-A": True}}, "header X-A is a boolean"),
        ({"headers": {"X-A": {"k": 1}}}, "header X-A is an object"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "header x-a is there twice"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "Transfer-Encoding is the client's own"),
        ({"headers": {"content-length": 5}}, "content-length is the client's own"),
        ({"headers": {"Host": "other"}}, "Host is the client's own"),
        ({"query": "a=b"}, "query is a string"),
        ({"query": {"a": {"b": 1}}}, "query parameter 'a' is an object"),
        ({"query": {"a": "\ud800"}}, "not valid Unicode"),
        ({"json": 1, "body": "x"}, "one body"),
        ({"json": {"n": float("nan")}}, "json: value at $.n"),
        ({"json": {"n": float("inf")}}, "json: value at $.n"),
        ({"body": {"a": 1}}, "body is an object"),
        ({"body": "\ud800"}, "body is not valid Unicode"),
        ({"expect": "ok"}, "expect 'ok'"),
        ({"expect": [200, True]}, "expect True"),
        ({"expect": [99]}, "expect 99"),
        ({"max_size": 0}, "max_size 0"),
        ({"max_size": "1k"}, "max_size '1k'"),
        ({"redirects": 3}, "redirects are not followed"),
    ],
)
def test_what_cannot_be_sent_as_meant_is_refused(spec: dict[str, Any], said: str) -> None:
    failure = refusal(read, **spec)
    assert failure.kind == "http-request"
    assert said in str(failure)


def test_a_spec_that_is_no_object_is_refused() -> None:
    assert refusal(read_spec, None, "k").kind == "http-request"


def test_a_refused_header_does_not_show_its_value() -> None:
    failure = refusal(read, headers={"Authorization": "hunter2\n"})
    assert "hunter2" not in str(failure)


def test_the_timeout_is_a_duration() -> None:
    assert read_timeout({"timeout": "1m"}) == 60_000_000
    assert read_timeout({}) is read_timeout(None) is None
    assert "timeout 'soon'" in str(refusal(read_timeout, {"timeout": "soon"}))


# ------------------------------------------------------------------------------------------ URLs


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://Shop.Example", "http://shop.example/"),
        ("https://shop.example:443/a", "https://shop.example/a"),
        ("http://shop.example:8080/a?b=c#part", "http://shop.example:8080/a?b=c"),
        ("https://shop.example?x=1", "https://shop.example/?x=1"),
        ("https://shop.example/a/../b", "https://shop.example/a/../b"),
        ("https://shop.example/é?q=ü", "https://shop.example/%C3%A9?q=%C3%BC"),
        ("https://shop.example/a%2Fb?sig=a%2Bb%3D", "https://shop.example/a%2Fb?sig=a%2Bb%3D"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("http://[::1]:8080/a", "http://[::1]:8080/a"),
        ("https://shop.example./a", "https://shop.example/a"),
        ("https://shop.example/<a>|{b}", "https://shop.example/%3Ca%3E%7C%7Bb%7D"),
    ],
)
def test_a_url_is_sent_as_it_was_checked(url: str, sent: str) -> None:
    target = read_url(url)
    assert target.url == sent
    same_place(target)


def same_place(target: Target) -> None:
    """The client reads the same host, port and query out of the URL as the check did."""
    seen = URL(target.url, encoded=True)
    assert (seen.raw_host, seen.port) == (target.host, target.port)
    assert str(seen) == target.url
    assert seen.user is seen.password is None


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "url is null"),
        (5, "url is a number"),
        ("", "not text"),
        ("ftp://shop.example/", "scheme 'ftp'"),
        ("file:///etc/passwd", "scheme 'file'"),
        ("shop.example/api", "scheme ''"),
        ("//shop.example/", "scheme ''"),
        ("https:///api", "no host"),
        ("https://", "no host"),
        ("https://shop.example:0/", "port 0"),
        ("https://shop.example:99999/", "cannot be read"),
        ("https://shop.example:http/", "cannot be read"),
        ("https://[::1/", "cannot be read"),
        ("https://a b.example/", "a space"),
        ("https://shop.example/a b", "a space"),
        ("https://shop.example/\r\nX: y", "control character"),
        ("https://shop.example/\t", "control character"),
        ("https://shop.example\\@evil.example/", "backslash"),
        ("https://shop%2eexample/", "cannot be read"),
        ("https://shop..example/", "cannot be read"),
        ("https://\u2488.example/", "cannot be read"),  # one character that stands for "1."
        (f"https://{'a' * 64}.example/", "cannot be read"),
        ("https://shop.example,evil/", "cannot be read"),
        ("https://@shop.example/", "user name or password"),
    ],
)
def test_a_url_that_leads_nowhere_sure_is_refused(url: Any, said: str) -> None:
    failure = refusal(read_url, url)
    assert failure.kind == "http-url"
    assert said in str(failure)


def test_credentials_in_a_url_are_refused_and_not_shown() -> None:
    failure = refusal(read_url, "https://ann:hunter2@shop.example/")
    assert "Authorization" in str(failure)
    assert "hunter2" not in str(failure)


def test_messages_show_no_query() -> None:
    request = read(url="https://shop.example/a?key=hunter2", query={"token": "hunter3"})
    assert request.shown == "GET https://shop.example/a"


PIECES = ["http", "https", "://", "/", "@", ":", "#", "?", "\\", "%", ".", "[", "]", "80", "a.b"]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join))
def test_no_url_is_read_as_two_places(text: str) -> None:
    for url in (text, f"http://a.example{text}", f"https://{text}"):
        target = None
        with suppress(Failure):
            target = read_url(url)
        if target is not None:
            same_place(target)
