"""The interpreter and the official CEL binding agree on random expressions, errors included.

The binding needs an interpreter of its own: PERDURE_CEL_ORACLE_PYTHON, or .venv-oracle at the
root of the repository (Python >= 3.12 with cel-expr-python).
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perdure.expr import ExprError, compile_expression
from perdure.expr.values import Duration, Timestamp
from tests.differential.cel import generate
from tests.differential.cel.oracle import EPOCH, told

ROOT = Path(__file__).parents[3]
ORACLE = Path(__file__).with_name("oracle.py")


@pytest.fixture(scope="module")
def oracle() -> Path:
    named = os.environ.get("PERDURE_CEL_ORACLE_PYTHON")
    found = Path(named) if named else ROOT / ".venv-oracle" / "bin" / "python"
    if not found.exists():
        pytest.skip(f"no interpreter with the official CEL binding at {found}: NOT compared")
    return found


def theirs(oracle: Path, asked: list[dict[str, Any]]) -> list[list[Any]]:
    text = json.dumps({"variables": sorted(generate.DATA), "expressions": asked})
    ran = subprocess.run(
        [str(oracle), str(ORACLE)], input=text, capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


def as_python(value: Any) -> Any:
    if isinstance(value, Timestamp):
        return EPOCH + datetime.timedelta(microseconds=value.nanos // 1000)
    if isinstance(value, Duration):
        return datetime.timedelta(microseconds=value.nanos // 1000)
    if isinstance(value, list):
        return [as_python(item) for item in value]
    if isinstance(value, Mapping):
        return {key: as_python(item) for key, item in value.items()}
    return value


def ours(each: dict[str, Any]) -> list[Any]:
    try:
        value = compile_expression(each["text"]).evaluate(each["data"])
    except ExprError as error:
        return ["error", str(error)]
    return ["value", told(as_python(value))]


def agree(mine: list[Any], other: list[Any]) -> bool:
    return mine[0] == other[0] and (mine[0] == "error" or mine[1] == other[1])


def differences(oracle: Path, asked: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    pairs = zip(asked, theirs(oracle, asked), strict=True)
    compared = [(each["text"], ours(each), other) for each, other in pairs]
    return [each for each in compared if not agree(each[1], each[2])]


def test_random_expressions_have_the_same_outcome(oracle: Path) -> None:
    asked = generate.expressions(seed=20_260_101, count=6_000)
    assert differences(oracle, asked) == []


def test_random_patterns_match_the_same_strings(oracle: Path) -> None:
    asked = generate.searches(seed=20_260_102, count=6_000)
    assert differences(oracle, asked) == []


def test_the_generator_makes_values_and_errors_of_every_kind() -> None:
    outcomes = [ours(each) for each in generate.expressions(seed=7, count=1_000)]
    values = [value for tag, value in outcomes if tag == "value"]
    assert 300 < len(values) < 900
    assert {type(value) for value in values} >= {bool, str, list, dict}
    assert {key for value in values if isinstance(value, dict) for key in value} >= {
        "int", "double", "bytes", "timestamp", "duration", "map",
    }  # fmt: skip


def test_a_difference_would_be_seen() -> None:
    assert not agree(["value", {"int": "1"}], ["value", {"double": "1.0"}])
    assert not agree(["value", True], ["error", "x"])
