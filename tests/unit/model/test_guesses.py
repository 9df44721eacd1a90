"""Guesses at what a word was meant to be, and that they are not made without end."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.graph import lint
from perdure.model import guesses
from perdure.model.guesses import COMPARISONS, MOST_KNOWN, bounded, did_you_mean


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("methd", 'did you mean "method"?'),
        ("zzz", "use one of: url, method"),
        ("x" * 10_000, "use one of: url, method"),
    ],
)
def test_the_nearest_known_word_is_suggested(word: str, hint: str) -> None:
    assert did_you_mean(word, ["url", "method"]) == hint
    assert did_you_mean("zzz", [str(i) for i in range(50)]) == ""
    many = [f"node-{i}" for i in range(MOST_KNOWN)]
    assert did_you_mean("nodes-7", many) == 'did you mean "node-7"?'
    assert did_you_mean("nodes-7", [*many, "one-too-many"]) == ""


def test_within_a_bound_the_first_words_are_guessed() -> None:
    known = [f"node-{i}" for i in range(MOST_KNOWN)]
    for _ in range(2):  # each bound has a count of its own
        with bounded():
            hints = [did_you_mean(f"nodes-{i}", known) for i in range(COMPARISONS // 1000 + 5)]
            with bounded():
                assert did_you_mean("nodes-7", known) == ""
        assert hints.count("") == 5
        assert hints[-1] == ""
    assert did_you_mean("nodes-7", known) != ""


def test_a_document_full_of_mistakes_is_told_of_all_and_compares_few_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0
    real = guesses.get_close_matches

    def counted(word: str, known: Any, n: int) -> list[str]:
        nonlocal compared
        compared += len(known)
        return list(real(word, known, n))

    monkeypatch.setattr(guesses, "get_close_matches", counted)
    nodes = [{"id": f"n{i}", "type": "FORK"} for i in range(500)]
    edges = [{"from": f"nn{i}", "to": f"n{i % 500}"} for i in range(2000)]
    found = lint({"name": "g", "nodes": nodes, "edges": edges, "input": dict.fromkeys("abcd", 1)})
    assert sum("there is no node" in finding.message for finding in found) == 2000
    assert 0 < compared < COMPARISONS + MOST_KNOWN
