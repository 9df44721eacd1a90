"""Reads a document's `input` schema: every mistake in it, and a plain form to make a check from.

Nothing in a schema is passed over: a keyword that would not be checked is refused, so that no
document promises what no start keeps. In the plain form every schema with others in it stands by
itself under a name of ours and is referred to, so that depth, names and references of the document
play no part in what is made of it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from perdure.expr.errors import Fault
from perdure.graph.form import named
from perdure.graph.inputs.bounds import MAX_SIZE, endless, size_of
from perdure.graph.inputs.formats import FORMATS, Check, pattern_check
from perdure.graph.inputs.keywords import (
    ANNOTATIONS,
    DEFINITIONS,
    KEYWORDS,
    LEAF,
    ONE,
    POINTER,
    REFUSED,
    RULES,
    SAME_VALUE,
    SEVERAL,
    names_wrong,
)
from perdure.graph.inputs.literals import literal, looks_referring
from perdure.graph.read import pointer
from perdure.model.graph_rules import Finding
from perdure.model.guesses import did_you_mean


class PlainSchema(msgspec.Struct):
    """`parts` by name; `main`: the name of the whole. `checks` of text by the name that stands as
    their `format`, `called`: what such a text is, in words."""

    main: str = "d0"
    parts: dict[str, Any] = {}
    checks: dict[str, Check] = {}
    called: dict[str, str] = {}


def read_schema(schema: Any, at: str, findings: list[Finding]) -> PlainSchema:
    """The plain form of the schema at a pointer; what is wrong with it goes to `findings`."""
    found: list[Finding] = []
    plain = _Reader(schema, at, found).read()
    # What is referred to from several places is told once.
    findings += dict.fromkeys(found)
    return plain


class _Reader:
    def __init__(self, schema: Any, at: str, findings: list[Finding]) -> None:
        self._whole = schema
        self._at = at
        self._findings = findings
        self._plain = PlainSchema()
        #: Pointer of a schema → its name; those still to be read are in `_waiting`.
        self._names: dict[str, str] = {}
        self._waiting: list[tuple[str, Any]] = []
        #: Name → the names of parts that judge the same value, for references in a circle.
        self._same: dict[str, set[str]] = {}
        self._part = ""

    def read(self) -> PlainSchema:
        self._named(self._at, self._whole)
        while self._waiting:
            at, schema = self._waiting.pop()
            self._part = self._names[at]
            self._same.setdefault(self._part, set())
            self._plain.parts[self._part] = self._schema(schema, at)
        if not self._findings:
            self._check_bounds()
        return self._plain

    def _check_bounds(self) -> None:
        turn = endless(self._same)
        if turn is not None:
            at = next(at for at, name in self._names.items() if name == turn)
            message = "this schema refers to itself without end"
            self._problem(at, message, "refer to it below properties or items")
        elif size_of(self._plain.parts) > MAX_SIZE:
            self._problem(self._at, "the schema is too large", "check less, or in a step")

    def _problem(self, at: str, message: str, hint: str = "", *, on_key: bool = False) -> None:
        self._findings.append(Finding(at, message, None, hint, on_key=on_key))

    def _named(self, at: str, schema: Any) -> dict[str, str]:
        """A reference to the part that a schema becomes."""
        if at not in self._names:
            self._names[at] = f"d{len(self._names)}"
            self._waiting.append((at, schema))
        return {"$ref": f"#/definitions/{self._names[at]}"}

    def _sub(self, schema: Any, at: str, keyword: str) -> Any:
        """A schema inside another: a reference to it, unless it is one of plain rules only."""
        if isinstance(schema, bool) or (isinstance(schema, dict) and schema.keys() <= LEAF):
            return self._schema(schema, at)
        if isinstance(schema, dict) and "$ref" in schema and schema.keys() <= POINTER:
            return self._reference(schema["$ref"], pointer(at, "$ref"), keyword)
        ref = self._named(at, schema)
        if keyword in SAME_VALUE:
            self._same[self._part].add(self._names[at])
        return ref

    def _schema(self, schema: Any, at: str) -> Any:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            self._problem(at, f"this is {named(schema)}, not a schema", 'write {"type": "object"}')
            return True
        out: dict[str, Any] = {}
        more: list[Any] = []
        for key, value in schema.items():
            below = pointer(at, key)
            if key in REFUSED or key not in KEYWORDS:
                hint = REFUSED.get(key) or did_you_mean(key, KEYWORDS)
                self._problem(below, f'"{key}" is not a keyword that is checked', hint, on_key=True)
            elif key in ("$ref", "pattern", "format", "items", "prefixItems"):
                continue
            elif key not in ANNOTATIONS:
                self._keyword(key, value, below, out, more)
        self._check_required(schema, at)
        self._texts(schema, at, more)
        self._items(schema, at, out)
        if "$ref" in schema:
            more.append(self._reference(schema["$ref"], pointer(at, "$ref"), "allOf"))
        if more:
            out["allOf"] = [*out.get("allOf", ()), *more]
        return out

    def _check_required(self, schema: dict[str, Any], at: str) -> None:
        known, needed = schema.get("properties", {}), schema.get("required")
        if schema.get("additionalProperties") is not False or not isinstance(known, dict):
            return
        for index, name in enumerate(needed if isinstance(needed, list) else ()):
            if isinstance(name, str) and name not in known:
                below = pointer(pointer(at, "required"), index)
                hint = did_you_mean(name, list(known))
                self._problem(below, f"{named(name)} is required, and not let in", hint)

    def _keyword(self, key: str, value: Any, at: str, out: dict[str, Any], more: list[Any]) -> None:
        """One keyword: what it becomes goes to `out`, or to the list of schemas that also hold."""
        if key in RULES:
            wrong = RULES[key](value)
            if wrong is not None:
                self._problem(at, *wrong)
            elif key in ("const", "enum") and looks_referring(value):
                several = [literal(one) for one in value] if key == "enum" else [literal(value)]
                more.append({"anyOf": several})
            else:
                out[key] = value
        elif key in ONE:
            out[key] = self._sub(value, at, key)
        elif key in SEVERAL:
            if not isinstance(value, list) or not value:
                self._problem(at, f"{key} is {named(value)}, not a list of schemas")
                return
            out[key] = [self._sub(one, pointer(at, i), key) for i, one in enumerate(value)]
        elif not isinstance(value, dict):
            self._problem(at, f"{key} is {named(value)}, not an object")
        elif key in ("dependentRequired", "dependencies", "dependentSchemas"):
            more.append({"dependencies": self._dependencies(key, value, at)})
        else:
            parts = {name: self._sub(one, pointer(at, name), key) for name, one in value.items()}
            if key not in DEFINITIONS:
                out[key] = parts

    def _dependencies(self, key: str, value: dict[str, Any], at: str) -> dict[str, Any]:
        result = {}
        for name, needed in value.items():
            below = pointer(at, name)
            if key == "dependentRequired" or isinstance(needed, list):
                wrong = names_wrong(needed)
                if wrong is not None:
                    self._problem(below, *wrong)
                result[name] = needed
            else:
                result[name] = self._sub(needed, below, key)
        return result

    def _texts(self, schema: dict[str, Any], at: str, more: list[Any]) -> None:
        """`pattern` and `format`, each as a check of ours."""
        for key in ("pattern", "format"):
            if key not in schema:
                continue
            below, value = pointer(at, key), schema[key]
            if not isinstance(value, str):
                self._problem(below, f"{key} is {named(value)}, not text")
                continue
            if key == "format" and value not in FORMATS:
                self._problem(below, f"the format {named(value)} is not checked",
                              did_you_mean(value, list(FORMATS)))  # fmt: skip
                continue
            try:
                called, check = FORMATS[value] if key == "format" else (
                    f"text with {value} in it", pattern_check(value)
                )  # fmt: skip
            except Fault as fault:
                self._problem(below, fault.message, "patterns have the syntax of RE2")
                continue
            name = f"t{len(self._plain.checks)}"
            self._plain.checks[name], self._plain.called[name] = check, called
            more.append({"format": name})

    def _items(self, schema: dict[str, Any], at: str, out: dict[str, Any]) -> None:
        """`items` in both meanings: of all items, or of those after `prefixItems`."""
        items, below = schema.get("items"), pointer(at, "items")
        first = schema.get("prefixItems")
        if "prefixItems" in schema:
            self._keyword("prefixItems", first, pointer(at, "prefixItems"), out, [])
            first = out.pop("prefixItems", None)
        if isinstance(items, list):
            first = [self._sub(one, pointer(below, i), "items") for i, one in enumerate(items)]
        elif "items" in schema:
            sub = self._sub(items, below, "items")
            out["items" if first is None else "additionalItems"] = sub
        if first is not None:
            out["items"] = first

    def _reference(self, to: Any, at: str, keyword: str) -> Any:
        if not isinstance(to, str) or (to != "#" and not to.startswith("#/")):
            hint = "references are to places of this schema: #/$defs/name"
            self._problem(at, f"{named(to)} is not in this schema, and nothing else is read", hint)
            return True
        found, place = self._whole, self._at
        for step in to[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            inside = isinstance(found, dict) and name in found
            if isinstance(found, list) and name.isascii() and name.isdigit() and len(name) < 6:
                inside = int(name) < len(found)
            if not inside:
                self._problem(at, f"{named(to)} leads nowhere: there is no {named(name)}")
                return True
            found = found[int(name)] if isinstance(found, list) else found[name]
            place = pointer(place, name)
        if isinstance(found, bool):
            return found
        ref = self._named(place, found)
        if keyword in SAME_VALUE:
            self._same[self._part].add(self._names[place])
        return ref
