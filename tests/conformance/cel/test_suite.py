"""The core cases of CEL's public conformance suite, all of them.

Known misses are listed with reasons; the list may only shrink, so a listed case that passes fails
here as well. The cases are read from beside the repository and skipped, aloud, when not there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perdure.expr import ExprError, compile_expression
from perdure.expr.values import KeyedMap, Kind, Uint

ROOT = Path(__file__).parents[3]
CASES = ROOT.parent / "shared" / "data" / "cel" / "core.jsonl"
MISSES = Path(__file__).with_name("known_misses.txt")


def cases() -> list[dict[str, Any]]:
    if not CASES.exists():
        return []
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def known_misses() -> set[str]:
    lines = MISSES.read_text(encoding="utf-8").splitlines()
    return {line.split("  ")[0] for line in lines if line and not line.startswith("#")}


def decoded(tagged: dict[str, Any]) -> Any:
    (kind, value), *_ = tagged.items()
    if kind == "list":
        return [decoded(item) for item in value]
    if kind == "map":
        pairs = [(decoded(key), decoded(item)) for key, item in value]
        return dict(pairs) if all(type(key) is str for key, _ in pairs) else KeyedMap(pairs)
    simple = {"int": int, "uint": Uint, "double": float, "bytes": base64.b64decode, "type": Kind}
    return simple[kind](value) if kind in simple else value


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return repr(a) == repr(b)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def passes(case: dict[str, Any]) -> bool:
    bindings = {name: decoded(value) for name, value in case.get("bindings", {}).items()}
    try:
        program = compile_expression(case["expr"], container=case.get("container", ""))
        value = program.evaluate(bindings)
    except ExprError:
        return bool(case.get("error", False))
    return not case.get("error") and same(value, decoded(case["expect"]))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_a_core_case_passes_unless_it_is_listed(case: dict[str, Any]) -> None:
    listed = case["id"] in known_misses()
    assert passes(case) is not listed, "listed but passes: unlist it" if listed else case["expr"]


def test_the_core_cases_are_there_and_nearly_all_pass() -> None:
    if not CASES.exists():
        pytest.skip(f"the core cases are not at {CASES}: conformance NOT tested")
    ids = {case["id"] for case in cases()}
    assert known_misses() <= ids
    assert len(known_misses()) <= len(ids) // 100
