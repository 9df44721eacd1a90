"""From YAML text to a tree of nodes that know where they stand.

Built from the parser's events, so that nothing of the parser's own ideas of values gets in, and
depth and size are bounded while it reads. Refuses what a document of JSON's types has no use for
and what readers of YAML disagree on: several documents, characters that only some take for line
breaks, keys that are not text, aliases that grow without end. The parser is always the one
written in Python: a file must mean the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from perdure.graph.read import MAX_BYTES, MAX_DEPTH, line_column, refusal
from perdure.graph.tree import Node
from perdure.graph.yaml_advice import stumble, unquoted, words
from perdure.model.errors import GraphError

if TYPE_CHECKING:
    import yaml

#: Characters of the text. Larger documents are made by programs, which can write JSON.
MAX_TEXT: Final = 1024 * 1024
#: Values and keys of the text: so many are read in about a second.
MAX_VALUES: Final = 60_000
#: What YAML does not allow in its text, and what only its older version takes for a line break.
_FORBIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]"
)
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ANCHOR: Final = re.compile(r"&\S+\s+(?=\S)")
_BREAKS: Final = "\x85\u2028\u2029"


def compose(text: str) -> Node:
    """The tree of a text. Raises GraphError with line and column of what is refused, whatever
    the text may be."""
    try:
        import yaml
    except ImportError:
        raise refusal(
            "documents in YAML need the extra [yaml]", "pip install 'perdure[yaml]'"
        ) from None
    if len(text) > MAX_TEXT:
        message = f"the document has {len(text):,} characters, at most {MAX_TEXT:,} count in YAML"
        raise refusal(message, "write it as JSON")
    _check_characters(text)
    loader = yaml.SafeLoader(text)
    try:
        return _Composer(text, iter(loader.get_event, None)).document()
    except GraphError:
        raise
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(text, stumble(text, error), error) from None
    except Exception as error:  # the parser has edges at which plain ValueErrors leave it
        raise _not_yaml(text, min(loader.index, len(text)), error) from None


def _check_characters(text: str) -> None:
    found = _FORBIDDEN.search(text)
    if found is None:
        return
    code = ord(found[0])
    message = f"the character U+{code:04X} cannot stand in a document"
    if found[0] in _BREAKS:
        message = f"the character U+{code:04X} is a line break to some readers of YAML only"
    escape = f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    hint = f'write "{escape}" in double quotes, or take it out'
    raise refusal(message, hint, line_column(text, found.start()))


def _not_yaml(text: str, at: int, error: Exception) -> GraphError:
    template = unquoted(text, at)
    if template is not None:
        message = "a template is not in quotes, and to YAML { begins a mapping"
        return refusal(message, 'write "{{ … }}" in quotes', line_column(text, template))
    message, hint = words(text, at, error)
    return refusal(f"the document is not YAML: {message}", hint, line_column(text, at))


def _joined(text: str) -> str:
    """Text whose halves of surrogate pairs, written as two escapes as in JSON, are characters."""
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


class _Composer:
    """One use. Recursion is bounded by MAX_DEPTH."""

    def __init__(self, text: str, events: Iterator[yaml.Event]) -> None:
        self._text = text
        self._events = events
        self._values = 0
        #: By anchor; None while what it names is still being read.
        self._anchors: dict[str, Node | None] = {}

    def document(self) -> Node:
        """The one document's root."""
        root: Node | None = None
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent" and root is not None:
                raise self._refusal(event, "a second document begins here", "keep one in a file")
            if kind.startswith(("Document", "Stream")):
                continue
            root = self._node(event, 0)
        if root is None:
            raise refusal("the document is empty; write name, nodes and edges")
        return root

    def _node(self, event: Any, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._refusal(event, f"the document is nested more than {MAX_DEPTH} levels deep")
        kind = type(event).__name__
        if kind == "AliasEvent":
            return self._alias(event, depth)
        self._values += 1
        if self._values > MAX_VALUES:
            message = f"more than {MAX_VALUES:,} values and keys, the most that count in YAML"
            raise self._refusal(event, message, "write the document as JSON")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        start, end = event.start_mark.index, event.end_mark.index
        node = Node("scalar", self._past_properties(event, start), end, event.tag)
        if kind == "ScalarEvent":
            node.style, node.text = event.style or "", _joined(event.value)
            node.weight += len(node.text)
        elif kind == "SequenceStartEvent":
            node.kind = "list"
            self._list(node, depth)
        else:
            node.kind = "mapping"
            self._mapping(event, node, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _past_properties(self, event: Any, start: int) -> int:
        """Where the value itself begins, after its anchor; a tag is what there is to point at."""
        if event.anchor is None or event.tag is not None:
            return start
        found = _ANCHOR.match(self._text, start)
        return start if found is None else found.end()

    def _alias(self, event: Any, depth: int) -> Node:
        node = self._anchors.get(event.anchor)
        if event.anchor not in self._anchors:
            raise self._refusal(event, f"*{event.anchor} names no anchor", f"&{event.anchor} is "
                                "to stand before it")  # fmt: skip
        if node is None:
            raise self._refusal(event, f"*{event.anchor} stands inside what it names", "such a "
                                "value would have no end")  # fmt: skip
        if depth + node.height > MAX_DEPTH:
            raise self._refusal(event, f"the document is nested more than {MAX_DEPTH} levels deep")
        return node

    def _list(self, node: Node, depth: int) -> None:
        node.items = []
        while True:
            event: Any = next(self._events)
            if type(event).__name__ == "SequenceEndEvent":
                node.end = event.end_mark.index
                return
            self._add(node, event, depth)

    def _mapping(self, start: Any, node: Node, depth: int) -> None:
        node.keys, node.items = [], []
        while True:
            event: Any = next(self._events)
            if type(event).__name__ == "MappingEndEvent":
                node.end = event.end_mark.index
                return
            node.keys.append(self._key(event, depth))
            self._add(node, next(self._events), depth)

    def _key(self, event: Any, depth: int) -> Node:
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            at = event.start_mark.index
            if kind[0] == "M" and self._text.startswith("{{", at - 1):
                message = "a template is not in quotes, and to YAML { begins a mapping"
                hint = 'write "{{ … }}" in quotes'
                raise refusal(message, hint, line_column(self._text, at - 1))
            raise self._refusal(event, "a list or a mapping cannot be a key", "use text")
        key = self._node(event, depth)
        if key.kind != "scalar":
            raise self._refusal(event, "a list or a mapping cannot be a key", "use text")
        return key

    def _add(self, node: Node, event: Any, depth: int) -> None:
        item = self._node(event, depth + 1)
        node.items.append(item)
        node.height = max(node.height, item.height + 1)
        node.weight += item.weight + (len(node.keys[-1].text) if node.keys else 0)
        if node.weight > MAX_BYTES:
            hint = "aliases are copied to where they stand: write less of them"
            raise self._refusal(event, "the document grows too large here", hint)

    def _refusal(self, event: Any, message: str, hint: str = "") -> GraphError:
        return refusal(message, hint, line_column(self._text, event.start_mark.index))
