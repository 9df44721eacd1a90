"""Journals of every released format are read by today's code, to the very same actions."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from msgspec import Raw

from perdure.codec.journal import VALUES, decode_row
from perdure.kernel.actions import AnyAction
from perdure.kernel.onward import Onward
from tests.replay.journals import FOLDER, JOURNALS, SHAPES, rows_of, shapes, written


@pytest.mark.parametrize("name", JOURNALS)
def test_a_golden_journal_is_read_to_the_actions_it_was_made_from(name: str) -> None:
    rows = rows_of(name)
    expected = JOURNALS[name]()
    assert len(rows) == len(expected)
    for (body, payloads), transitions in zip(rows, expected, strict=True):
        found = decode_row(body)
        for transition in found:
            for action in [transition] if type(transition) is Onward else transition.actions:
                for value in VALUES:
                    ref = getattr(action, f"{value}_ref", None)
                    if ref is not None:
                        msgspec.structs.force_setattr(action, value, Raw(payloads[ref]))
                        msgspec.structs.force_setattr(action, f"{value}_ref", None)
        assert found == transitions


@pytest.mark.parametrize("name", JOURNALS)
def test_a_golden_journal_is_written_today_as_it_was(name: str) -> None:
    # scenario 235
    assert (FOLDER / f"{name}.jsonl").read_bytes() == written(JOURNALS[name]())


def test_every_file_is_named_and_every_name_has_its_file() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.jsonl")) == sorted(JOURNALS)


def test_every_action_and_every_field_stands_in_some_golden_journal() -> None:
    seen, onward = set(), set()
    for journal in JOURNALS.values():
        for row in journal():
            for transition in row:
                if type(transition) is Onward:
                    onward |= msgspec.json.decode(msgspec.json.encode(transition)).keys()
                    continue
                for action in transition.actions:
                    bare = msgspec.json.decode(msgspec.json.encode(action))
                    seen |= {(bare["do"], field) for field in bare if field != "do"}
    promised = {
        (kind.__struct_config__.tag, field)
        for kind in get_args(AnyAction)
        for field in kind.__struct_fields__
        # A reference is there only once the row is written: the file of large values has them.
        if not field.endswith("_ref")
    }
    assert promised - seen == set()
    fields = set(Onward.__struct_fields__)
    assert {field for field in fields if not field.endswith("_ref")} - onward == set()


def test_the_records_have_the_shapes_that_were_written_down() -> None:
    frozen = msgspec.json.decode(SHAPES.read_bytes())
    today = msgspec.json.decode(msgspec.json.encode(shapes()))
    assert today == frozen, (
        "a record of the journal changed its form: stored journals must still be read. Only add "
        "optional fields or new tags, add a golden journal that uses them to tests/replay, and run "
        "python -m tests.replay.journals"
    )
