"""Exported runs as text: JSON Lines, format 1, of which every byte is covered by a checksum.

A head with the format; for each run its definition (the first time it is met), its row, journal,
payloads and mail, and an end with the checksum of the run's lines; at last how many runs there
were and the checksum of all before. What was cut off, changed or written by a newer perdure is
refused. Values stand in a line as the JSON they are, what is no plain JSON as base64.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, TypeAlias

import msgspec
from msgspec import Raw

from perdure.model.errors import InvalidRequest
from perdure.model.status import RunStatus
from perdure.stores.moving import SavedPayload, SavedRow, SavedRun
from perdure.stores.port import NEVER, Mail, RunRow, StoredDefinition

FORMAT: Final = 1
#: Of one line, so that a file that is no export is not read whole; payloads are far below.
LONGEST_LINE: Final = 1 << 30

if TYPE_CHECKING:
    RawOrNone: TypeAlias = Raw | None
else:  # absent is None, and null is Raw(b"null"): msgspec keeps them apart only in this form
    RawOrNone = Raw


class _Head(msgspec.Struct, kw_only=True):
    perdure: str
    format: int


class _Definition(msgspec.Struct, kw_only=True):
    hash: str
    name: str
    version: str
    kind: str
    created: int
    source: RawOrNone = None
    source_b64: bytes | None = None


class _Run(msgspec.Struct, kw_only=True):
    key: str
    definition: str
    id: str
    version: str
    hash: str
    status: RunStatus
    created: int
    epoch: int
    base_seq: int
    crashes: int = 0
    finished: int | None = None
    deadline: int | None = None
    stalled: str | None = None
    metadata: RawOrNone = None
    metadata_b64: bytes | None = None
    output: RawOrNone = None
    output_b64: bytes | None = None
    output_at: tuple[int, int] | None = None
    failure: RawOrNone = None
    failure_b64: bytes | None = None
    not_before: int = 0
    rows: int
    payloads: int
    mail: int


class _Row(msgspec.Struct, kw_only=True):
    seq: int
    at: int
    writer: str
    commit: int
    read: int
    body: RawOrNone = None
    body_b64: bytes | None = None


class _Payload(msgspec.Struct, kw_only=True):
    seq: int
    n: int
    value: RawOrNone = None
    value_b64: bytes | None = None


class _Mail(msgspec.Struct, kw_only=True):
    n: int
    id: str
    kind: str
    name: str
    body: RawOrNone = None
    body_b64: bytes | None = None


class _End(msgspec.Struct, kw_only=True):
    run: str
    sha256: str


class _Done(msgspec.Struct, kw_only=True):
    runs: int
    sha256: str


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """One of these is there."""

    definition: _Definition | None = None
    run: _Run | None = None
    row: _Row | None = None
    payload: _Payload | None = None
    mail: _Mail | None = None
    end: _End | None = None
    done: _Done | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode
_decode_head = msgspec.json.Decoder(_Head).decode


# ---------------------------------------------------------------------------------- writing


class ExportWriter:
    """Gives the lines of a file, one run after the other: `head`, `run` for each, `done`."""

    def __init__(self) -> None:
        self._all = sha256()
        self._definitions: set[str] = set()
        self._runs = 0

    def head(self, by: str, at: str) -> bytes:
        """The first line."""
        return self._told({"perdure": "export", "format": FORMAT, "by": by, "at": at})

    def run(self, saved: SavedRun) -> Iterator[bytes]:
        """The lines of a run."""
        known = saved.definition
        if known is not None and known.hash not in self._definitions:
            self._definitions.add(known.hash)
            fields = {name: getattr(known, name) for name in _COPIED_OF_DEFINITION}
            yield self._told({"definition": {**fields, **_packed("source", known.source)}})
        summed = sha256()
        for line in _lines(saved):
            data = self._told(line)
            summed.update(data)
            yield data
        name = f"{saved.run.definition}/{saved.run.id}"
        self._runs += 1
        yield self._told({"end": {"run": name, "sha256": summed.hexdigest()}})

    def done(self) -> bytes:
        """The last line."""
        return self._told({"done": {"runs": self._runs, "sha256": self._all.hexdigest()}})

    def _told(self, line: dict[str, Any]) -> bytes:
        data = _encode(line) + b"\n"
        self._all.update(data)
        return data


_COPIED_OF_DEFINITION: Final = ("hash", "name", "version", "kind", "created")
_COPIED: Final = (
    "definition", "id", "version", "hash", "status", "created", "epoch", "base_seq", "crashes",
    "finished", "deadline", "stalled", "output_at", "not_before",
)  # fmt: skip


def _lines(saved: SavedRun) -> Iterator[dict[str, Any]]:
    row = saved.run
    yield {
        "run": {
            "key": row.key.hex(),
            **{name: getattr(row, name) for name in _COPIED},
            **_packed("metadata", row.metadata),
            **_packed("output", row.output),
            **_packed("failure", row.failure),
            "rows": len(saved.journal),
            "payloads": len(saved.payloads),
            "mail": len(saved.mail),
        }
    }
    for r in saved.journal:
        told = {"seq": r.seq, "at": r.at, "writer": r.writer, "commit": r.commit, "read": r.read}
        yield {"row": {**told, **_packed("body", r.body)}}
    for p in saved.payloads:
        yield {"payload": {"seq": p.seq, "n": p.n, **_packed("value", p.value)}}
    for m in saved.mail:
        letter = {"n": m.n, "id": m.id, "kind": m.kind, "name": m.name}
        yield {"mail": {**letter, **_packed("body", m.body)}}


def _packed(name: str, value: bytes | None) -> dict[str, Any]:
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


# ---------------------------------------------------------------------------------- reading


class ExportReader:
    """Reads a file that ExportWriter wrote, run by run. Iterating raises InvalidRequest at the
    first thing that is wrong; only at the end is it sure that nothing was cut off."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._all = sha256()
        self._number = 0
        self._line = b""
        self._definitions: dict[str, StoredDefinition] = {}

    def __iter__(self) -> Iterator[SavedRun]:
        self._check_head()
        runs = 0
        while True:
            before = self._all.hexdigest()
            line = self._next()
            if line.definition is not None:
                self._keep(line.definition)
            elif line.run is not None:
                yield self._run(line.run)
                runs += 1
            elif line.done is not None:
                if line.done.runs != runs or line.done.sha256 != before:
                    self._refuse("it does not hold what its last line says: it is damaged")
                if self._file.read(1):
                    self._refuse("there is more after its last line: it is damaged")
                return
            else:
                self._refuse("this line is out of place: the file is damaged")

    def _check_head(self) -> None:
        line = self._read()
        try:
            head = _decode_head(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._refuse("it is no file that perdure export wrote")
        if head.perdure != "export":
            self._refuse("it is no file that perdure export wrote")
        if head.format > FORMAT:
            self._refuse(
                f"it has format {head.format}, this perdure reads {FORMAT} at most: upgrade perdure"
            )

    def _run(self, head: _Run) -> SavedRun:
        summed = sha256(self._line)

        def part(name: str) -> Any:
            found = getattr(self._next(), name)
            if found is None:
                self._refuse(f"a {name} of {head.definition}/{head.id} is missing: it is damaged")
            summed.update(self._line)
            return found

        rows = [part("row") for _ in range(head.rows)]
        payloads = [part("payload") for _ in range(head.payloads)]
        letters = [part("mail") for _ in range(head.mail)]
        total = summed.hexdigest()
        end = self._next().end
        if end is None or (end.run, end.sha256) != (f"{head.definition}/{head.id}", total):
            self._refuse(f"the checksum of {head.definition}/{head.id} is another: it is damaged")
        definition = self._definitions.get(head.hash)
        try:
            return SavedRun(
                _row(head, len(letters)),
                [
                    SavedRow(r.seq, r.at, r.writer, r.commit, r.read, _needed(r, "body"))
                    for r in rows
                ],
                [SavedPayload(p.seq, p.n, _needed(p, "value")) for p in payloads],
                [Mail(m.n, m.id, m.kind, m.name, _unpacked(m, "body")) for m in letters],
                definition,
            )
        except ValueError as error:
            self._refuse(f"{head.definition}/{head.id}: {error}: it is damaged")

    def _keep(self, found: _Definition) -> None:
        source = _unpacked(found, "source") or b""
        if found.kind == "graph" and sha256(source).hexdigest() != found.hash:
            self._refuse(f"the document of {found.name} is not the one it says: it is damaged")
        self._definitions[found.hash] = StoredDefinition(
            found.hash, found.name, found.version, found.kind, source, found.created
        )

    def _next(self) -> _Line:
        line = self._read()
        try:
            return _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._refuse(f"this line cannot be read ({error}): the file is damaged")

    def _read(self) -> bytes:
        line = self._file.readline(LONGEST_LINE)
        self._number += 1
        if not line.endswith(b"\n"):
            if self._number == 1:
                self._refuse("it is no file that perdure export wrote")
            self._refuse("the file ends here, in the middle: it was cut off")
        self._all.update(line)
        self._line = line
        return line

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidRequest(
            f"{self._name}, line {self._number}: {why}; nothing of it was imported"
        )


def _row(head: _Run, mail: int) -> RunRow:
    fields = {name: getattr(head, name) for name in _COPIED}
    key = bytes.fromhex(head.key)
    if len(key) != 16:
        raise ValueError("its key has not 16 bytes")
    return RunRow(
        key=key,
        **fields,
        owner=None,
        ready_at=NEVER,
        metadata=_needed(head, "metadata"),
        output=_unpacked(head, "output"),
        failure=_unpacked(head, "failure"),
        mail=mail,
    )


def _needed(part: Any, name: str) -> bytes:
    value = _unpacked(part, name)
    if value is None:
        raise ValueError(f"it lacks a {name}")
    return value


def _unpacked(part: Any, name: str) -> bytes | None:
    packed: bytes | None = getattr(part, f"{name}_b64")
    if packed is not None:
        return packed
    value = getattr(part, name)
    return None if value is None else bytes(value)
