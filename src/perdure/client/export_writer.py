"""Writing runs as a file that another store can import; see export_lines for the lines.

A head with the format; for each run its definition (the first time it is met), its row, journal,
payloads and mail, and an end with the checksum of the run's lines; at last how many runs there
were and the checksum of all before.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec

from perdure.client.export_lines import FORMAT, OF_DEFINITION, OF_RUN, packed
from perdure.stores.moving import SavedRun

_encode = msgspec.json.Encoder().encode


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
            fields = {name: getattr(known, name) for name in OF_DEFINITION}
            yield self._told({"definition": {**fields, **packed("source", known.source)}})
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


def _lines(saved: SavedRun) -> Iterator[dict[str, Any]]:
    row = saved.run
    yield {
        "run": {
            "key": row.key.hex(),
            **{name: getattr(row, name) for name in OF_RUN},
            **packed("metadata", row.metadata),
            **packed("output", row.output),
            **packed("failure", row.failure),
            "rows": len(saved.journal),
            "payloads": len(saved.payloads),
            "mail": len(saved.mail),
        }
    }
    for r in saved.journal:
        told = {"seq": r.seq, "at": r.at, "writer": r.writer, "commit": r.commit, "read": r.read}
        yield {"row": {**told, **packed("body", r.body)}}
    for p in saved.payloads:
        yield {"payload": {"seq": p.seq, "n": p.n, **packed("value", p.value)}}
    for m in saved.mail:
        letter = {"n": m.n, "id": m.id, "kind": m.kind, "name": m.name}
        yield {"mail": {**letter, **packed("body", m.body)}}
