"""Exported runs read back are what was written, whatever is in them; any change is refused."""

from __future__ import annotations

import io

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.client.export_reader import ExportReader
from perdure.client.export_writer import ExportWriter
from perdure.model.errors import InvalidRequest
from perdure.stores.answers import Mail, RunRow
from perdure.stores.moving import SavedPayload, SavedRow, SavedRun
from perdure.stores.rows import NEVER, StoredDefinition

numbers = st.integers(0, NEVER)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
#: JSON on one line, JSON on several, JSON with spaces around it, and what is no JSON.
values = st.one_of(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    ).map(msgspec.json.encode),
    st.binary(max_size=20),
    st.sampled_from([b"", b"null", b" 1", b"1\n", b'{"a":\n1}', b'"\xff"', b"1 2", b"NaN"]),
)
rows = st.builds(SavedRow, numbers, numbers, texts, numbers, numbers, values)
payloads = st.builds(SavedPayload, numbers, numbers, values)
mail = st.builds(Mail, numbers, texts, texts, texts, st.none() | values)
definitions = st.builds(
    StoredDefinition,
    texts,
    texts,
    texts,
    st.sampled_from(["workflow", "saga"]),
    values,
    numbers,
    st.none() | numbers,
)


@st.composite
def runs(draw: st.DrawFn) -> SavedRun:
    letters = draw(st.lists(mail, max_size=3))
    definition = draw(st.none() | definitions)
    row = RunRow(
        draw(st.binary(min_size=16, max_size=16)), draw(texts), draw(texts), draw(texts),
        draw(texts) if definition is None else definition.hash,
        draw(st.sampled_from(["running", "completed", "failed", "canceled"])),
        draw(numbers), None, draw(numbers), NEVER, draw(numbers), draw(numbers),
        finished=draw(st.none() | numbers), deadline=draw(st.none() | numbers),
        stalled=draw(st.none() | texts), metadata=draw(values), output=draw(st.none() | values),
        output_at=draw(st.none() | st.tuples(numbers, numbers)),
        failure=draw(st.none() | values), mail=len(letters), not_before=draw(numbers),
    )  # fmt: skip
    return SavedRun(
        row, draw(st.lists(rows, max_size=3)), draw(st.lists(payloads, max_size=3)), letters,
        definition,
    )  # fmt: skip


def written(saved: list[SavedRun]) -> bytes:
    writer = ExportWriter()
    parts = [writer.head("perdure", "2026-01-31")]
    for run in saved:
        parts += writer.run(run)
    return b"".join([*parts, writer.done()])


def read(data: bytes) -> list[SavedRun]:
    return list(ExportReader(io.BytesIO(data), "x.jsonl"))


@settings(deadline=None)
@given(st.lists(runs(), max_size=3))
def test_what_is_read_is_what_was_written(saved: list[SavedRun]) -> None:
    expected: list[SavedRun] = []
    seen: dict[str, StoredDefinition] = {}
    for run in saved:
        if run.definition is not None:
            seen.setdefault(run.definition.hash, run.definition)
        definition = seen.get(run.run.hash)
        expected.append(msgspec.structs.replace(run, definition=definition))
    assert read(written(saved)) == expected


@settings(deadline=None, max_examples=200)
@given(st.lists(runs(), min_size=1, max_size=2), st.data())
def test_any_byte_that_is_changed_taken_or_added_is_noticed(
    saved: list[SavedRun], data: st.DataObject
) -> None:
    whole = written(saved)
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
    changed = whole[:at] + bytes([other]) + whole[at + 1 :]
    added = whole[:at] + bytes([other]) + whole[at:]
    for damaged in (changed, added, whole[:at], whole[:at] + whole[at + 1 :]):
        with pytest.raises(InvalidRequest):
            read(damaged)
