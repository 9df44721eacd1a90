"""Journal rows, format 1: the transitions of one row as JSON, large values apart.

    {"v":1,"t":[{"at":1700000000000000,"do":[{"do":"CompleteTask","task":…,"output":{…}}, …]}, …]}

A row holds what was decided and is read for ever: a field's meaning never changes, a new meaning
gets a new tag. A reader skips records whose tag begins with "~" (they only inform) when it does
not know them, and refuses the row for any other unknown tag: half a history is worse than none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from perdure.codec.values import INLINE_LIMIT
from perdure.kernel.actions import AnyAction, Transition
from perdure.model.errors import StoreError

VERSION: Final = 1
#: The fields of actions that hold values; each has a `…_ref` beside it.
VALUES: Final = ("input", "config", "output", "payload")
_INFORMATIONAL: Final = "~"


class _Row(msgspec.Struct, gc=False):
    v: int
    t: list[Transition]


class _Head(msgspec.Struct):
    v: int


class _LooseDecided(msgspec.Struct):
    at: int
    do: list[Raw] = []
    ignored: str | None = None
    signal_delivered: bool = False


class _LooseRow(msgspec.Struct):
    t: list[_LooseDecided]


class _Tag(msgspec.Struct):
    do: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Row).decode
_decode_head = msgspec.json.Decoder(_Head).decode
_decode_loose = msgspec.json.Decoder(_LooseRow).decode
_decode_tag = msgspec.json.Decoder(_Tag).decode
_decode_action: Any = msgspec.json.Decoder(AnyAction).decode


def encode_row(transitions: list[Transition]) -> tuple[bytes, list[bytes]]:
    """The row's body, and the values over 4 KiB that it refers to by their number."""
    body = _encode(_Row(VERSION, transitions))
    if len(body) <= INLINE_LIMIT:
        return body, []
    payloads: list[bytes] = []
    apart = [
        Transition(
            t.at, [_without_large(a, payloads) for a in t.actions], t.ignored, t.signal_delivered
        )
        for t in transitions
    ]
    return (_encode(_Row(VERSION, apart)), payloads) if payloads else (body, payloads)


def decode_row(body: bytes) -> list[Transition]:
    """The transitions of a row, exactly as they were encoded.

    Values (`Raw`) may share the row's memory, which they keep alive as a whole; copy one that
    outlives the others. Raises StoreError for a row that is damaged, or that a newer perdure
    wrote and this one cannot understand.
    """
    try:
        row = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _decode_with_care(body, error)
    if row.v != VERSION:
        return _decode_with_care(body, None)
    return row.t


def _without_large(action: AnyAction, payloads: list[bytes]) -> AnyAction:
    """The action with every value over the limit moved to `payloads`."""
    moved: dict[str, Any] = {}
    for name in VALUES:
        value: Raw | None = getattr(action, name, None)
        if value is not None and len(memoryview(value)) > INLINE_LIMIT:
            moved[name] = None
            moved[f"{name}_ref"] = len(payloads)
            payloads.append(bytes(value))
    return msgspec.structs.replace(action, **moved) if moved else action


def _decode_with_care(body: bytes, error: Exception | None) -> list[Transition]:
    """Read a row that is not plainly of this version: skip what only informs, or say why not."""
    try:
        version = _decode_head(body).v
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as damage:
        raise StoreError(
            f"journal row of {len(body)} bytes is damaged ({error or damage}): restore the "
            "database from a backup"
        ) from damage
    if version != VERSION:
        raise StoreError(
            f"journal row is of format {version}; this perdure reads up to format {VERSION}: "
            "upgrade perdure to at least the version that wrote it"
        )
    try:
        return [
            Transition(d.at, _known(d.do), d.ignored, d.signal_delivered)
            for d in _decode_loose(body).t
        ]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as damage:
        raise StoreError(
            f"journal row of {len(body)} bytes does not hold what its format says ({damage}): "
            "it is damaged, or a newer perdure wrote it"
        ) from damage


def _known(records: Sequence[Raw]) -> list[AnyAction]:
    """The actions among the records, without those that only inform."""
    actions = []
    for record in records:
        tag = _decode_tag(record).do
        if tag in _TAGS:
            actions.append(_decode_action(record))
        elif not tag.startswith(_INFORMATIONAL):
            raise StoreError(
                f"journal row holds a record {tag!r} that this perdure does not know: a newer one "
                "wrote it; upgrade perdure to at least that version to load this run"
            )
    return actions


def _tags() -> frozenset[str]:
    return frozenset(str(kind.__struct_config__.tag) for kind in AnyAction.__args__)


_TAGS: Final = _tags()
