"""The lines of exported runs, format 1: what stands in each, and how values stand there.

Values stand in a line as the JSON they are where that gives the very same bytes back; what is no
plain JSON on one line stands as base64 under the same name with `_b64`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw

from perdure.model.status import RunStatus

FORMAT: Final = 1

if TYPE_CHECKING:
    RawOrNone: TypeAlias = Raw | None
else:  # absent is None, and null is Raw(b"null"): msgspec keeps them apart only in this form
    RawOrNone = Raw

#: Fields that stand in a line as they are stored.
OF_DEFINITION: Final = ("hash", "name", "version", "kind", "created", "max_duration")
OF_RUN: Final = (
    "definition", "id", "version", "hash", "status", "created", "epoch", "base_seq", "crashes",
    "finished", "deadline", "stalled", "output_at", "not_before",
)  # fmt: skip


#: What every store can keep.
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class HeadLine(msgspec.Struct, kw_only=True):
    """What the file is, and in which format."""

    perdure: str
    format: int


class DefinitionLine(msgspec.Struct, kw_only=True):
    """A definition that later runs have."""

    hash: str
    name: str
    version: str
    kind: str
    created: Count
    #: Missing in older files.
    max_duration: Count | None = None
    source: RawOrNone = None
    source_b64: bytes | None = None


class RunLine(msgspec.Struct, kw_only=True):
    """A run's row, and how many lines of each kind follow."""

    key: str
    definition: str
    id: str
    version: str
    hash: str
    status: RunStatus
    created: Count
    epoch: Count
    base_seq: Count
    crashes: Count = 0
    finished: Count | None = None
    deadline: Count | None = None
    stalled: str | None = None
    metadata: RawOrNone = None
    metadata_b64: bytes | None = None
    output: RawOrNone = None
    output_b64: bytes | None = None
    output_at: tuple[Count, Count] | None = None
    failure: RawOrNone = None
    failure_b64: bytes | None = None
    not_before: Count = 0
    rows: Count
    payloads: Count
    mail: Count


class RowLine(msgspec.Struct, kw_only=True):
    """A row of its journal."""

    seq: Count
    at: Count
    writer: str
    commit: Count
    read: Count
    body: RawOrNone = None
    body_b64: bytes | None = None


class PayloadLine(msgspec.Struct, kw_only=True):
    """A large value of a row."""

    seq: Count
    n: Count
    value: RawOrNone = None
    value_b64: bytes | None = None


class MailLine(msgspec.Struct, kw_only=True):
    """A message, read or not."""

    n: Count
    id: str
    kind: str
    name: str
    body: RawOrNone = None
    body_b64: bytes | None = None


class EndLine(msgspec.Struct, kw_only=True):
    """The checksum of the run's lines."""

    run: str
    sha256: str


class DoneLine(msgspec.Struct, kw_only=True):
    """How many runs there were, and the checksum of all lines before."""

    runs: Count
    sha256: str


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One of these is there."""

    definition: DefinitionLine | None = None
    run: RunLine | None = None
    row: RowLine | None = None
    payload: PayloadLine | None = None
    mail: MailLine | None = None
    end: EndLine | None = None
    done: DoneLine | None = None


def packed(name: str, value: bytes | None) -> dict[str, Any]:
    """A value as itself where that gives these very bytes back, else as base64."""
    if value is None:
        return {}
    return {name: Raw(value)} if _is_plain(value) else {f"{name}_b64": value}


def _is_plain(value: bytes) -> bool:
    if b"\n" in value or b"\r" in value or value != value.strip():
        return False
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def needed(part: Any, name: str) -> bytes:
    """A value that must be there. Raises ValueError."""
    value = unpacked(part, name)
    if value is None:
        raise ValueError(f"it lacks a {name}")
    return value


def unpacked(part: Any, name: str) -> bytes | None:
    """The bytes of a value; None where there is none."""
    packed: bytes | None = getattr(part, f"{name}_b64")
    if packed is not None:
        return packed
    value = getattr(part, name)
    return None if value is None else bytes(value)
