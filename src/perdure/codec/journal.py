"""Journal rows: the transitions of one row as JSON, large values apart.

    {"v":1,"t":[{"at":1700000000000000,"do":[{"do":"CompleteTask","task":…,"output":{…}}, …]}, …]}
    {"v":2,"t":[{"at":1700000000000000,"task":…,"node":…,"next_task":…,"next":…, …}, …]}

In format 2 a transition may also be an Onward, which has no `do`. A row says the oldest format that
can hold it.

A row holds what was decided and is read for ever: a field's meaning never changes, a new meaning
gets a new tag. A reader skips records whose tag begins with "~" (they only inform) when it does
not know them, and refuses the row for any other unknown tag: half a history is worse than none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from perdure.codec.values import INLINE_LIMIT
from perdure.kernel.actions import AnyAction, Transition
from perdure.kernel.onward import Decided, Onward
from perdure.model.errors import StoreError

PLAIN: Final = 1
VERSION: Final = 2
#: The fields of actions that hold values; each has a `…_ref` beside it.
VALUES: Final = ("input", "config", "output", "payload")
_INFORMATIONAL: Final = "~"
Record = TypeVar("Record", bound=AnyAction | Onward)


class _Row(msgspec.Struct, gc=False):
    v: int
    t: Sequence[Decided]


class _Plain(msgspec.Struct, gc=False):
    v: int
    t: list[Transition]


class _Onwards(msgspec.Struct, gc=False):
    v: int
    t: list[Onward]


class _Head(msgspec.Struct):
    v: int


class _LooseDecided(msgspec.Struct):
    at: int
    do: list[Raw] = []
    ignored: str | None = None
    signal_delivered: bool = False


class _LooseRow(msgspec.Struct):
    t: list[Raw]


class _Next(msgspec.Struct):
    next_task: str | None = None


class _Tag(msgspec.Struct):
    do: str


_encode = msgspec.json.Encoder().encode
_decode_plain = msgspec.json.Decoder(_Plain).decode
_decode_onwards = msgspec.json.Decoder(_Onwards).decode
_decode_onward = msgspec.json.Decoder(Onward).decode
_decode_next = msgspec.json.Decoder(_Next).decode
_decode_head = msgspec.json.Decoder(_Head).decode
_decode_loose = msgspec.json.Decoder(_LooseRow).decode
_decode_one = msgspec.json.Decoder(_LooseDecided).decode
_decode_tag = msgspec.json.Decoder(_Tag).decode
_decode_action: Any = msgspec.json.Decoder(AnyAction).decode
_DAMAGE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def encode_row(transitions: Sequence[Decided]) -> tuple[bytes, Sequence[bytes]]:
    """The row's body, and the values over 4 KiB that it refers to by their number."""
    version = PLAIN
    for transition in transitions:
        if type(transition) is Onward:
            version = VERSION
    body = _encode(_Row(version, transitions))
    if len(body) <= INLINE_LIMIT:
        return body, ()
    payloads: list[bytes] = []
    apart = [_lightened(transition, payloads) for transition in transitions]
    return (_encode(_Row(version, apart)), payloads) if payloads else (body, payloads)


def encode_onward(onward: Onward) -> tuple[bytes, Sequence[bytes]]:
    """The same of a row that holds this transition alone."""
    body = _encode(_Row(VERSION, (onward,)))
    return (body, ()) if len(body) <= INLINE_LIMIT else encode_row((onward,))


def decode_row(body: bytes) -> Sequence[Decided]:
    """The transitions of a row, exactly as they were encoded.

    Values (`Raw`) may share the row's memory, which they keep alive as a whole; copy one that
    outlives the others. Raises StoreError for a row that is damaged, or that a newer perdure
    wrote and this one cannot understand.
    """
    try:
        if body.startswith(b'{"v":2'):
            onwards = _decode_onwards(body)
            if onwards.v == VERSION:
                return onwards.t
        else:
            plain = _decode_plain(body)
            if plain.v == PLAIN:
                return plain.t
    except _DAMAGE as error:
        return _decode_with_care(body, error)
    return _decode_with_care(body, None)


def _lightened(transition: Decided, payloads: list[bytes]) -> Decided:
    """The transition without its large values."""
    if type(transition) is Onward:
        return _without_large(transition, payloads)
    assert type(transition) is Transition
    actions = [_without_large(action, payloads) for action in transition.actions]
    return msgspec.structs.replace(transition, actions=actions)


def _without_large(action: Record, payloads: list[bytes]) -> Record:
    """The record with every value over the limit moved to `payloads`."""
    moved: dict[str, Any] = {}
    for name in VALUES:
        value: Raw | None = getattr(action, name, None)
        if value is not None and len(memoryview(value)) > INLINE_LIMIT:
            moved[name] = None
            moved[f"{name}_ref"] = len(payloads)
            payloads.append(bytes(value))
    return msgspec.structs.replace(action, **moved) if moved else action


def _decode_with_care(body: bytes, error: Exception | None) -> list[Decided]:
    """Read a row that is not all of one kind: skip what only informs, or say why not."""
    try:
        version = _decode_head(body).v
    except _DAMAGE as damage:
        raise StoreError(
            f"journal row of {len(body)} bytes is damaged ({error or damage}): restore the "
            "database from a backup"
        ) from damage
    if version not in (PLAIN, VERSION):
        raise StoreError(
            f"journal row is of format {version}; this perdure reads up to format {VERSION}: "
            "upgrade perdure to at least the version that wrote it"
        )
    try:
        return [_decoded(one, version) for one in _decode_loose(body).t]
    except _DAMAGE as damage:
        raise StoreError(
            f"journal row of {len(body)} bytes does not hold what its format says ({damage}): "
            "it is damaged, or a newer perdure wrote it"
        ) from damage


def _decoded(one: Raw, version: int) -> Decided:
    if version != PLAIN and _decode_next(one).next_task is not None:
        return _decode_onward(one)
    found = _decode_one(one)
    return Transition(found.at, _known(found.do), found.ignored, found.signal_delivered)


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
