"""What the scalars of a YAML document mean: JSON's types by YAML 1.2's core schema.

`NO` is text, and so are dates and `12:30:00`. Spellings that older readers take for another number
are refused, and so are tags and merge keys.
"""

from __future__ import annotations

import re
from typing import Any, Final

from perdure.graph.read import integer, marked, pointer
from perdure.graph.tree import Node
from perdure.model.graph_rules import Finding

_CONSTANTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT: Final = re.compile(r"[-+]?[0-9]+")
_BASED: Final = re.compile(r"0o([0-7]+)|0x([0-9a-fA-F]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_ZERO_FIRST: Final = re.compile(r"[-+]?0[0-9]+")


def value_of(node: Node, findings: list[Finding], at: str = "") -> Any:
    """The value of a tree; what is wrong with its parts goes to `findings`."""
    if node.tag is not None:
        shown = node.tag.replace("tag:yaml.org,2002:", "!!")[:60]
        message = f"the tag {shown} says nothing here"
        findings.append(Finding(at, message, None, 'take it out; "quotes" make a value text'))
    if node.kind == "list":
        return [value_of(item, findings, pointer(at, i)) for i, item in enumerate(node.items)]
    if node.kind == "scalar":
        return scalar(node, findings, at)
    pairs = []
    for key, item in zip(node.keys, node.items, strict=True):
        name = key.text
        below = pointer(at, name)
        _check_key(key, below, findings)
        pairs.append((name, value_of(item, findings, below)))
    return marked(pairs)


def scalar(node: Node, findings: list[Finding], at: str) -> Any:
    """What a scalar says: text if it is quoted or looks like nothing else."""
    if node.style:
        return node.text
    text = node.text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _ZERO_FIRST.fullmatch(text):
        message = f"{text[:60]} has a zero first: some readers take it for an octal number"
        hint = "write the number without it, or text in quotes"
        findings.append(Finding(at, message, None, hint))
        return 0
    if _INT.fullmatch(text):
        return integer(text)
    based = _BASED.fullmatch(text)
    if based is not None:
        return int(based[1], 8) if based[1] else int(based[2], 16)
    if _FLOAT.fullmatch(text):
        return float(text)
    odd = _NOT_FINITE.fullmatch(text)
    if odd is not None:
        return float(f"{odd[1]}inf" if odd[1] is not None else "nan")
    return text


def _check_key(key: Node, at: str, findings: list[Finding]) -> None:
    if key.tag is not None:
        findings.append(
            Finding(at, "a tag at a key says nothing", None, "take it out", on_key=True)
        )
    if key.style:
        return
    if key.text == "<<":
        message = "merge keys are not part of YAML 1.2"
        hint = "write the members out, or name the whole value by an alias"
        findings.append(Finding(at, message, None, hint, on_key=True))
    elif not isinstance(scalar(key, [], at), str):
        message = f"the key {key.text[:60] or 'that is missing here'} is not text"
        findings.append(Finding(at, message, None, "put it in quotes", on_key=True))
