"""Graph: a workflow written as a document.

Loading checks the whole document and compiles its templates; a Graph that exists is sound. Its
identity is the hash of the canonical text, the same in every process and on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, final

import msgspec

from perdure.graph.check import Checked, check, sealed
from perdure.graph.document import Document
from perdure.graph.plan import build_plan
from perdure.graph.read import MAX_BYTES, refusal
from perdure.graph.source import Format, Source, format_of
from perdure.kernel.machine import GraphMachine
from perdure.kernel.plan import GraphPlan
from perdure.model.definition import Definition
from perdure.model.errors import GraphError, InvalidRequest

if TYPE_CHECKING:
    from perdure.graph.inputs.check import InputCheck


@final
class Graph(Definition[dict[str, Any] | None, dict[str, Any]]):
    """A graph document, checked and compiled. Made by `Graph.load` and `Graph.read`; immutable."""

    kind = "graph"

    #: What the kernel decides by.
    plan: GraphPlan
    _document: Document
    _source: bytes
    _input: InputCheck | None

    def __init__(self) -> None:
        raise TypeError("use Graph.load(document) or Graph.read(path)")

    @classmethod
    def load(cls, source: Source, /, *, format: Format = "json") -> Graph:
        """The definition of a text, or of the same as a mapping. `format` is that of the text:
        "json", or "yaml" (needs the extra [yaml]); the same document gives the same definition.

        Raises GraphError listing every problem: `problems` holds Findings, with line and column
        where there was a text.
        """
        return cls._of(check(source, format), "")

    @classmethod
    def read(cls, path: str | PathLike[str], /) -> Graph:
        """The definition in a file: YAML if its name ends in .yaml or .yml, else JSON. Raises
        GraphError, also for a file that cannot be read; every message names the file."""
        file = fspath(path)
        try:
            checked = check(_bytes(file), format_of(file))
        except GraphError as error:
            problems = error.problems
            raise GraphError("\n".join(one.shown(file) for one in problems), problems) from None
        return cls._of(checked, file)

    @classmethod
    def _of(cls, checked: Checked, file: str) -> Graph:
        text = sealed(checked, file)
        digest = sha256(text).hexdigest()
        document = checked.document
        graph = object.__new__(cls)
        graph._source = text
        graph._document = document
        graph._input = checked.input
        graph.plan = build_plan(
            document, checked.shape, checked.templates, document.version or digest[:12], digest
        )
        return graph

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

    @property
    def planned(self) -> tuple[str, ...]:
        """The ids of its nodes, in document order."""
        return tuple(self.plan.nodes)

    def mermaid(self, history: Iterable[Mapping[str, Any]] | None = None) -> str:
        """The graph as Mermaid text. With the records of `Run.history()`: how that run went."""
        from perdure.graph.draw import mermaid, sketch_of

        return mermaid(sketch_of(self._document, self.version, history))

    def svg(self, history: Iterable[Mapping[str, Any]] | None = None) -> str:
        """The graph as an SVG drawing that needs nothing else. With the records of
        `Run.history()`: how that run went. Raises InvalidRequest where a graph is too tangled."""
        from perdure.graph.draw import sketch_of, svg

        return svg(sketch_of(self._document, self.version, history))

    def check_input(self, input: bytes | None, codec: Any = None) -> None:
        """Raise InvalidRequest, naming every place, for an input that the document's `input`
        schema does not let in. The input itself is left as it is: no defaults are filled in."""
        if self._input is None:
            return
        try:
            value = None if input is None else msgspec.json.decode(input)
        except RecursionError:
            raise InvalidRequest(f"the input of {self.name} is nested too deeply") from None
        self._input.refuse(self.name, value)

    def machine(self, run: Any, deps: Any) -> GraphMachine:
        """The kernel's machine for a run of this graph."""
        return GraphMachine(self.plan, run, deps)


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  no need for a Path
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refusal(f"the file cannot be read: {reason}") from None
