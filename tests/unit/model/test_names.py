"""Names, node ids and run ids: what is let through and what is refused."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.errors import DefinitionError, InvalidId, InvalidName
from perdure.model.names import check_name, check_run_id, is_node_id, name_from_function, type_name

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-"


@pytest.mark.rule("D-23", "W-1")
@pytest.mark.parametrize("name", ["a", "0", "send-welcome", "a--b", "x" * 64, "7up"])
def test_a_name_of_small_letters_digits_and_inner_hyphens_passes(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.rule("D-23", "W-1")
@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "A", "a_b", "a b", "x" * 65, "é", "a\n", "٣", None, 3, b"a"]
)
def test_any_other_name_is_refused_and_the_message_says_what_is_allowed(name: object) -> None:
    with pytest.raises(InvalidName, match="use 1-64 characters of a-z 0-9 -") as caught:
        check_name(name, "step")
    assert str(caught.value).startswith(f"step {name!r}")
    assert isinstance(caught.value, DefinitionError)


@pytest.mark.rule("D-23", "W-1")
@pytest.mark.parametrize("name", ["send_welcome", "Send_Welcome", "_send_welcome"])
def test_a_functions_name_is_answered_with_the_name_that_its_step_has(name: str) -> None:
    with pytest.raises(InvalidName, match=r'; did you mean "send-welcome"\?$'):
        check_name(name, "step")


@pytest.mark.rule("D-23", "W-1")
@given(st.text(alphabet=ALPHABET, min_size=1, max_size=64))
def test_a_name_passes_exactly_when_no_hyphen_is_at_an_end(name: str) -> None:
    if name.strip("-") == name:
        assert check_name(name) == name
    else:
        with pytest.raises(InvalidName):
            check_name(name)


@pytest.mark.rule("D-23")
@pytest.mark.parametrize("node", ["a", "_", "A1", "send-welcome", "a--b", "_x_", "x" * 256])
def test_a_node_id_starts_with_a_letter_or_underscore(node: str) -> None:
    assert is_node_id(node)


@pytest.mark.rule("D-23")
@pytest.mark.parametrize(
    "node", ["", "1a", "-a", "a-", "a.b", "a b", "é", "a\n", "a~undo", "x" * 257, None, 1]
)
def test_any_other_node_id_is_refused(node: object) -> None:
    assert not is_node_id(node)


@pytest.mark.rule("W-3")
@pytest.mark.parametrize("run", ["7", "order 7/ä", "x" * 256, "\x80"])
def test_a_run_id_is_free_text(run: str) -> None:
    assert check_run_id(run) == run


@pytest.mark.rule("W-3")
@pytest.mark.parametrize(
    ("run", "why"),
    [
        ("", "non-empty"),
        (None, "non-empty"),
        (7, "non-empty"),
        ("a\x00", "control characters"),
        ("a\nb", "control characters"),
        ("\x7f", "control characters"),
        ("x" * 257, "too long: at most 256"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_a_run_id_that_stores_could_not_keep_is_refused(run: object, why: str) -> None:
    with pytest.raises(InvalidId, match=why):
        check_run_id(run)


@pytest.mark.parametrize(
    ("function", "name"), [("send_welcome", "send-welcome"), ("_Ship", "ship"), ("f", "f")]
)
def test_a_function_gives_its_name_with_hyphens(function: str, name: str) -> None:
    assert name_from_function(function) == name


@pytest.mark.parametrize("found", ["the class", "another", "none"])
def test_a_class_is_named_as_it_is_imported(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    kind: Any = type("Order", (), {"__module__": "shop._inside"})
    other = type("Order", (), {})
    public = {"the class": {"Order": kind}, "another": {"Order": other}, "none": {}}[found]
    monkeypatch.setitem(sys.modules, "shop", SimpleNamespace(**public))
    expected = "shop.Order" if found == "the class" else "shop._inside.Order"
    assert type_name(kind) == expected
    assert type_name(dict) == "dict"
