"""Notes of a run: the last word of a key counts, and what was given away never changes."""

from __future__ import annotations

import pytest
from msgspec import Raw

from perdure.kernel.notes import NO_NOTES, Notes


def plain(notes: Notes) -> dict[str, bytes]:
    return {key: bytes(note) for key, note in notes.items()}


@pytest.mark.rule("S-7")
def test_the_last_word_of_a_key_counts_and_those_before_stay_as_they_were() -> None:
    first = NO_NOTES.adding({"a": Raw(b"1"), "é": Raw(b'"x"')})
    second = first.adding({"a": Raw(b"22")})
    third = second.adding({"b": Raw(b"3"), "a": Raw(b"444")})
    assert plain(first) == {"a": b"1", "é": b'"x"'}
    assert plain(second) == {"a": b"22", "é": b'"x"'}
    assert plain(third) == {"a": b"444", "é": b'"x"', "b": b"3"}
    assert [bytes(n.get("a") or b"") for n in (first, second, third)] == [b"1", b"22", b"444"]
    assert (first.get("b"), NO_NOTES.get("a")) == (None, None)
    assert [(len(n), n.size) for n in (NO_NOTES, first, second, third)] == [
        (0, 0), (2, 7), (2, 8), (3, 11),
    ]  # fmt: skip


def test_a_note_is_copied_a_few_times_however_many_follow() -> None:
    notes, copied = NO_NOTES, 0
    for n in range(2000):
        before = notes.layers
        notes = notes.adding({f"k{n}": Raw(b"%d" % n)})
        copied += sum(len(layer) for layer in notes.layers if layer not in before)
    assert copied <= 2000 * 12  # each is copied when what it stands in is doubled
    assert len(notes.layers) <= 12
    assert plain(notes) == {f"k{n}": b"%d" % n for n in range(2000)}


def test_a_key_that_is_noted_again_and_again_takes_the_place_of_one() -> None:
    notes = NO_NOTES
    for n in range(1000):
        notes = notes.adding({"last": Raw(b"%d" % n)})
    assert (len(notes), notes.size, len(notes.layers)) == (1, len("last") + 3, 1)
