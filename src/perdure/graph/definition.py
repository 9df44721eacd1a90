"""Graph: a workflow written as a document.

Loading checks the whole document and compiles its templates; a Graph that exists is sound. Its
identity is the hash of the canonical text, the same in every process and on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, final

from perdure.graph.check import check, sealed
from perdure.graph.document import Document
from perdure.graph.plan import build_plan
from perdure.graph.read import MAX_BYTES
from perdure.kernel.machine import GraphMachine
from perdure.kernel.plan import GraphPlan
from perdure.model.definition import Definition
from perdure.model.errors import GraphError
from perdure.model.graph_rules import Finding


@final
class Graph(Definition[dict[str, Any], dict[str, Any]]):
    """A graph document, checked and compiled. Made by `Graph.load` and `Graph.read`; immutable."""

    kind = "graph"

    #: What the kernel decides by.
    plan: GraphPlan
    _document: Document
    _source: bytes

    def __init__(self) -> None:
        raise TypeError("use Graph.load(document) or Graph.read(path)")

    @classmethod
    def load(cls, source: str | bytes | Mapping[str, Any], /) -> Graph:
        """The definition of a JSON text or of the same as a mapping.

        Raises GraphError listing every problem: `problems` holds Findings.
        """
        checked = check(source)
        text = sealed(checked)
        digest = sha256(text).hexdigest()
        document = checked.document
        graph = object.__new__(cls)
        graph._source = text
        graph._document = document
        graph.plan = build_plan(
            document, checked.shape, checked.templates, document.version or digest[:12], digest
        )
        return graph

    @classmethod
    def read(cls, path: str, /) -> Graph:
        """The definition in a JSON file. Raises GraphError, also for a file that cannot be read;
        every message names the file."""
        try:
            return cls.load(_bytes(path))
        except GraphError as error:
            raise GraphError(f"{path}: {error}", error.problems) from None

    @property
    def name(self) -> str:
        """The document's name."""
        return self.plan.name

    @property
    def version(self) -> str:
        """The document's `version`, or the first 12 hex digits of the hash (D-36)."""
        return self.plan.version

    @property
    def hash(self) -> str:
        """SHA-256 of `source`, hexadecimal."""
        return self.plan.hash

    @property
    def source(self) -> bytes:
        """The canonical text: `Graph.load` of it gives a definition with the same hash."""
        return self._source

    @property
    def description(self) -> str:
        """The document's description, or ""."""
        return self._document.description

    @property
    def max_duration(self) -> int | None:
        """How long a run may take, in µs; None = no end."""
        return self._document.max_duration

    @property
    def retention(self) -> int:
        """How long a finished run is kept, in µs. Default 30 days."""
        return self._document.retention

    def machine(self, run: Any, deps: Any) -> GraphMachine:
        """The kernel's machine for a run of this graph."""
        return GraphMachine(self.plan, run, deps)


def _bytes(path: str) -> bytes:
    if str(path).lower().endswith((".yaml", ".yml")):
        message = "this version reads JSON and not YAML yet: write the document as JSON"
        raise GraphError(message, [Finding("", message)])
    try:
        with open(path, "rb") as file:  # noqa: PTH123  no need for a Path
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"the file cannot be read: {reason}"
        raise GraphError(message, [Finding("", message)]) from None
