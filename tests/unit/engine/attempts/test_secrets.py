"""Secrets: looked up anew each time, hidden wherever they show, absent from every repr."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.attempts.secrets import Secrets
from perdure.expr import ExprError, reveal
from perdure.model.errors import InvalidOptions


def test_a_mapping_and_a_function_are_sources() -> None:
    for secrets in (Secrets({"key": "s3cret"}), Secrets({"key": "s3cret"}.get)):
        assert secrets["key"] == "s3cret"
        assert "key" in secrets
        assert "other" not in secrets
        assert secrets.get("other") is None
        with pytest.raises(KeyError):
            secrets["other"]


def test_no_source_has_no_secrets() -> None:
    assert "key" not in Secrets()


def test_as_a_mapping_it_lists_what_was_asked_for_and_is_still_there() -> None:
    values = {"a": "one", "b": "two", "c": "three"}
    secrets = Secrets(values)
    assert (list(secrets), len(secrets), bool(secrets)) == ([], 0, True)
    assert [secrets["b"], secrets["a"]] == ["two", "one"]
    del values["b"]
    assert dict(secrets) == {"a": "one"}


def test_templates_read_them() -> None:
    value = {"key": "{{secrets.key}}", "other": 1}
    shown = reveal(value, {"/key": "Bearer {{secrets.key}}"}, Secrets({"key": "s3cret"}.get))
    assert shown == {"key": "Bearer s3cret", "other": 1}
    with pytest.raises(ExprError):
        reveal(value, {"/key": "{{secrets.missing}}"}, Secrets())


def test_an_empty_value_is_a_value() -> None:
    assert Secrets({"key": ""})["key"] == ""


def test_values_are_looked_up_anew_and_rotated_ones_stay_hidden() -> None:
    values = {"key": "first-value"}
    secrets = Secrets(values.get)
    assert secrets["key"] == "first-value"
    values["key"] = "second-value"
    assert secrets["key"] == "second-value"
    hidden = secrets.redact("first-value second-value")
    assert hidden == "[secret key] [secret key]"


def test_the_environment_is_read_under_a_prefix() -> None:
    secrets = Secrets.from_environment({"PERDURE_SECRET_API_KEY": "v", "API_KEY": "w"})
    assert secrets["api-key"] == secrets["api_key"] == secrets["API_KEY"] == "v"
    assert "home" not in secrets


def test_a_value_that_is_not_text_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidOptions, match="secret 'key' is a bytes") as error:
        Secrets({"key": b"hunter2"})["key"]  # type: ignore[dict-item]
    assert "hunter2" not in str(error.value)


def test_values_of_three_characters_and_values_never_asked_for_are_not_hidden() -> None:
    secrets = Secrets({"short": "abc", "unused": "abcdef", "used": "wxyz"})
    assert secrets["short"] + secrets["used"] == "abcwxyz"
    assert secrets.redact("abc abcdef wxyz") == "abc abcdef [secret used]"


def test_a_value_that_holds_another_is_hidden_whole() -> None:
    secrets = Secrets({"a": "pass", "b": "password"})
    assert secrets["a"] + secrets["b"] == "passpassword"
    assert secrets.redact("password pass") == "[secret b] [secret a]"


def test_values_are_found_as_urls_json_and_python_write_them() -> None:
    value = 'p@ss w/rd"\n\\é'
    secrets = Secrets({"key": value})
    assert secrets["key"] == value
    forms = ["p%40ss%20w%2Frd%22%0A%5C%C3%A9", r"p@ss w/rd\"\n\\é", repr(value)[1:-1]]
    forms.append("p%40ss+w%2Frd%22%0A%5C%C3%A9")
    for form in forms:
        assert secrets.redact(f"<{form}>") == "<[secret key]>"


def test_a_repr_shows_nothing() -> None:
    secrets = Secrets({"key": "hunter2"})
    assert secrets["key"] not in repr(secrets)


@given(st.text(min_size=4), st.text(), st.text())
def test_a_value_never_survives_in_any_text(value: str, before: str, after: str) -> None:
    secrets = Secrets({"k": value})
    assert secrets["k"] == value
    parts = secrets.redact(before + value + after).split("[secret k]")
    assert len(parts) > 1 or value in "[secret k]"
    assert all(value not in part for part in parts)
