"""Texts that were meant as templates, and requests that surprise."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.graph.documents import document, task, warnings


def said(input: Any) -> list[str]:
    drawn = document("a b", "a>b")
    drawn["nodes"][1] = task("b", input)
    return [str(finding) for finding in warnings(drawn)]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("input.total", "this is a plain text and no template: it is passed as it is"),
        ("${input.total}", "write {{input.total}}"),
        ('tasks["a-b"].output', 'write {{tasks["a-b"].output}}'),
        ("${{ input.total }}", 'the "$" before {{ is no part of a template'),
    ],
)  # fmt: skip
def test_a_text_that_looks_like_a_template_is_told(text: str, part: str) -> None:
    (finding,) = said({"x": [text]})
    assert part in finding
    assert finding.startswith("/nodes/1/spec/input/x/0 (node b)")


@pytest.mark.parametrize("text", ["input", "see input.total for more", "$5 {{input.x}}", "{{{{x"])
def test_other_texts_are_fine(text: str) -> None:
    assert said({"x": text}) == []


def test_a_template_in_a_name_is_told() -> None:
    (finding,) = said({"{{input.key}}": 1})
    assert "the name of a field is never a template" in finding


def request(**spec: Any) -> list[str]:
    node = {"id": "h", "type": "HTTP", "spec": {"url": "https://shop.test", **spec}}
    return [str(finding) for finding in warnings({"name": "r", "nodes": [node]})]


def test_a_body_that_is_not_sent_with_a_get_is_told() -> None:
    (finding,) = request(json={"a": 1})
    assert 'without a "method" this is a GET, which has no body' in finding
    assert 'say "method": "POST"' in finding
    (finding,) = request(method="HEAD", body="x")
    assert "a HEAD has no body" in finding
    assert request(method="POST", json={"a": 1}) == []
    assert request(method="{{input.method}}", json={"a": 1}) == []


def test_json_written_as_a_text_is_told() -> None:
    (finding,) = request(method="POST", json='{"a": 1}')
    assert "is sent as a text" in finding
    assert request(method="POST", json="just words") == []


SECRET = {"Authorization": "Bearer {{secrets.key}}"}


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://shop.test/a", True),
        ("https://shop.test/a", False),
        ("http://localhost:8080/a", False),
        ("http://127.0.0.1/a", False),
        ("http://[::1]/a", False),
        ("{{input.url}}", False),
    ],
)
def test_a_secret_in_the_clear_is_told(url: str, told: bool) -> None:
    assert len(request(url=url, headers=SECRET)) == told
    assert request(url=url) == []


def test_a_credential_in_the_document_is_told() -> None:
    (finding,) = request(headers={"authorization": "Bearer 12345"})
    assert "this looks like a credential" in finding
    assert "12345" not in finding
    assert request(headers=SECRET) == []
