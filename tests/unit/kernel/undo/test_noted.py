"""What steps note for later ones is recorded with their completion, and is part of the snapshot."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from perdure.codec.journal import decode_row, encode_row
from perdure.kernel.actions import CompleteTask
from perdure.kernel.events import NodeCompleted
from perdure.kernel.fold import fold
from perdure.model.errors import StoreError
from tests.unit.kernel.drawing import chain, task
from tests.unit.kernel.harness import Harness, of, text
from tests.unit.kernel.undo.drawing import Saga, line


def complete(h: Harness, node: str, **noted: object) -> CompleteTask:
    """The node's attempt completes and notes this; what is recorded."""
    state = h.nodes[node]
    raw = {key: text(value) for key, value in noted.items()}
    step = h.apply(NodeCompleted(state.task, node, state.attempt, text(None), raw or None))
    (action,) = of(step, CompleteTask)
    assert isinstance(action, CompleteTask)
    return action


def noted(h: Harness) -> dict[str, object]:
    return {key: msgspec.json.decode(raw) for key, raw in h.run.noted.items()}


@pytest.mark.rule("S-7", "D-20")
def test_what_steps_and_undos_note_is_kept_the_last_word_of_a_key_counts(saga: Saga) -> None:
    h = line(saga, "a", "b", "c")
    h.start({"order": 7})
    assert complete(h, "a", customer="c1", tries=1).metadata is not None
    assert complete(h, "b", tries=None).metadata == {"tries": text(None)}
    assert noted(h) == {"customer": "c1", "tries": None}
    h.fail("c")
    complete(h, "b~undo", refund="r1")
    assert noted(h) == {"customer": "c1", "tries": None, "refund": "r1"}
    assert complete(h, "a~undo").metadata is None
    h.retry()
    assert noted(h)["customer"] == "c1"
    assert (h.run.input and bytes(h.run.input)) == b'{"order":7}'


@pytest.mark.rule("D-20")
def test_what_was_noted_is_read_back_from_the_journal(saga: Saga) -> None:
    h = line(saga, "a", "b")
    h.start()
    complete(h, "a", customer={"id": "c1", "big": "x" * 5000})
    body, apart = encode_row(h.recorded())
    again = fold(decode_row(body))
    assert (again.noted, len(apart)) == (h.run.noted, 0)
    assert again.noted.get("customer") == h.run.noted.get("customer") is not None


def test_a_report_that_does_not_count_notes_nothing(saga: Saga) -> None:
    h = line(saga, "a", "b")
    h.start()
    task = h.nodes["a"].task
    complete(h, "a", x=1)
    assert h.apply(NodeCompleted(task, "a", 0, text(1), {"x": Raw(b"2")})).ignored
    assert noted(h) == {"x": 1}


def test_what_was_noted_is_taken_back_with_a_decision_that_cannot_be_made(saga: Saga) -> None:
    nodes = [task("a"), task("b"), task("c", "{{tasks.a.output}}")]
    h = saga(nodes, chain("a", "b", "c"))
    h.start()
    complete(h, "a", x=1)
    h.reload()
    h.load_error = StoreError("down")
    with pytest.raises(StoreError):
        complete(h, "b", x=2)
    assert noted(h) == {"x": 1}
    h.load_error = None
    complete(h, "b", x=2)
    assert noted(h) == {"x": 2}
