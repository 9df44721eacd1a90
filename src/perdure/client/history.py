"""History: a journal as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw

from perdure.codec.journal import decode_row
from perdure.kernel.actions import Action
from perdure.kernel.onward import Decided
from perdure.model.moments import moment
from perdure.stores.answers import StoredRow

#: Fields whose value may stand apart from the row: then the record has `<name>_ref`, its number.
APART: Final = ("input", "config", "output")


def told(journal: Iterable[StoredRow]) -> Iterator[dict[str, Any]]:
    """One record per action of these rows, oldest first; see `told_of`."""
    for row in journal:
        for transition in decode_row(row.body):
            yield from told_of(transition, row.seq, row.writer)


def told_of(transition: Decided, seq: int, writer: str) -> Iterator[dict[str, Any]]:
    """One record per recorded action: `seq` and `writer` of its journal row, `time` (aware, UTC),
    `do`, and the action's own fields where they say something, with attempts from 1 (D-2)."""
    time = moment(transition.at)
    for action in transition.actions:
        record = {"seq": seq, "time": time, "writer": writer, "do": action.__struct_config__.tag}
        record.update(_fields(action))
        yield record


def _fields(action: Action) -> Iterator[tuple[str, Any]]:
    for name, default in _with_defaults(type(action)):
        value = getattr(action, name)
        if name == "attempt":
            yield name, value + 1
        elif value is None or value == {} or (value == default and name != "status"):
            continue
        else:
            yield name, _plain(value)


def _with_defaults(kind: type[Action]) -> list[tuple[str, Any]]:
    return [(field.name, field.default) for field in msgspec.structs.fields(kind)]


def _plain(value: Any) -> Any:
    if isinstance(value, Raw):
        return msgspec.json.decode(value)
    if isinstance(value, dict):  # values by name, as what a step noted
        return {name: _plain(item) for name, item in value.items()}
    return msgspec.to_builtins(value)
