"""Reading a file of exported runs: what was cut off or changed, or that a newer perdure wrote, is
refused, with the line where that was seen. Every byte is covered by a checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, BinaryIO, Final, NoReturn

import msgspec

from perdure.client.export_lines import (
    FORMAT,
    OF_RUN,
    DefinitionLine,
    HeadLine,
    Line,
    RunLine,
    needed,
    unpacked,
)
from perdure.model.errors import InvalidRequest
from perdure.stores.answers import Mail, RunRow
from perdure.stores.moving import SavedPayload, SavedRow, SavedRun
from perdure.stores.rows import NEVER, StoredDefinition

#: Of one line, so that a file that is no export is not read whole; payloads are far below.
LONGEST_LINE: Final = 1 << 30

_decode = msgspec.json.Decoder(Line).decode
_decode_head = msgspec.json.Decoder(HeadLine).decode


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

    def _run(self, head: RunLine) -> SavedRun:
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
                    SavedRow(r.seq, r.at, r.writer, r.commit, r.read, needed(r, "body"))
                    for r in rows
                ],
                [SavedPayload(p.seq, p.n, needed(p, "value")) for p in payloads],
                [Mail(m.n, m.id, m.kind, m.name, unpacked(m, "body")) for m in letters],
                definition,
            )
        except ValueError as error:
            self._refuse(f"{head.definition}/{head.id}: {error}: it is damaged")

    def _keep(self, found: DefinitionLine) -> None:
        source = unpacked(found, "source") or b""
        if found.kind == "graph" and sha256(source).hexdigest() != found.hash:
            self._refuse(f"the document of {found.name} is not the one it says: it is damaged")
        self._definitions[found.hash] = StoredDefinition(
            found.hash,
            found.name,
            found.version,
            found.kind,
            source,
            found.created,
            found.max_duration,
        )

    def _next(self) -> Line:
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


def _row(head: RunLine, mail: int) -> RunRow:
    fields = {name: getattr(head, name) for name in OF_RUN}
    key = bytes.fromhex(head.key)
    if len(key) != 16:
        raise ValueError("its key has not 16 bytes")
    return RunRow(
        key=key,
        **fields,
        owner=None,
        ready_at=NEVER,
        metadata=needed(head, "metadata"),
        output=unpacked(head, "output"),
        failure=unpacked(head, "failure"),
        mail=mail,
    )
