"""`steps`: what documents can call, for people and with JSON Schemas for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import perdure

pytestmark = pytest.mark.usefixtures("folder")

STEPS = '''
from __future__ import annotations
import msgspec
from perdure import Retry, step


class Item(msgspec.Struct):
    sku: str
    count: int = 1


class Odd:
    pass


@step(retry=Retry(5, initial=2, max_delay=60), timeout="90s", queue="cards")
def charge(item: Item, cents: int, note: str = "none", more: list[Item] | None = None) -> Item:
    """Charge the card.

    Not told in the list.
    """


@step
async def anything(value, *rest: int, **named: str):
    ...


@step(timeout=None)
def odd(thing: Nowhere = Odd(), gone: Missing = 3) -> None:
    ...


@step
def nothing() -> str:
    return ""
'''


@pytest.fixture(autouse=True)
def app(folder: Path) -> None:
    Path("shop.py").write_text(STEPS, encoding="utf-8")


def told(*words: str) -> dict[str, Any]:
    found = json.loads(perdure("steps", "--app", "shop.py", "--json", *words).stdout)
    return {one["name"]: one for one in found["steps"]}


def test_steps_are_listed_with_signature_documentation_and_policy() -> None:
    assert perdure("steps", "charge", "--app", "shop.py").stdout.splitlines() == [
        "charge(item: Item, cents: int, note: str = ..., more: list[Item] | None = ...)",
        "    Charge the card.",
        "    5 attempts, after 2.00 s × 2, at most 1 m 00 s, 1 m 30 s each, queue cards",
    ]
    lines = perdure("steps", "--app", "shop.py").stdout.splitlines()
    names = [line.partition("(")[0] for line in lines if not line.startswith(" ")]
    assert names == ["anything", "charge", "nothing", "odd"]
    assert "    1 attempt, no time limit" in lines
    assert "nothing()" in lines


def test_the_schema_of_the_input_is_an_object_with_a_value_per_parameter() -> None:
    schema = told()["charge"]["input"]
    assert schema["required"] == ["item", "cents"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["item"] == {"$ref": "#/$defs/Item"}
    assert properties["cents"] == {"type": "integer"}
    assert properties["note"] == {"type": "string", "default": "none"}
    assert properties["more"]["default"] is None
    assert schema["$defs"]["Item"]["properties"]["sku"] == {"type": "string"}


def test_what_cannot_be_described_is_left_open() -> None:
    found = told()
    assert found["anything"]["input"] == {
        "type": "object",
        "properties": {"value": {}, "rest": {"type": "array", "items": {"type": "integer"}}},
        "required": ["value"],
        "additionalProperties": {"type": "string"},
    }
    assert found["anything"]["output"] == {}
    assert found["odd"]["input"]["properties"] == {"thing": {}, "gone": {"default": 3}}
    assert found["odd"]["output"] == {"type": "null"}
    assert found["nothing"]["input"]["properties"] == {}


def test_a_step_tells_its_parameters_and_policy() -> None:
    charge = told("charge")["charge"]
    assert charge["output"]["$ref"] == "#/$defs/Item"
    assert charge["parameters"][2] == {
        "name": "note", "type": "str", "required": False, "default": "none",
    }  # fmt: skip
    assert charge["retry"] == {
        "attempts": 5, "initial": 2.0, "factor": 2.0, "max_delay": 60.0, "jitter": 0.0,
        "max_elapsed": None,
    }  # fmt: skip
    assert (charge["timeout"], charge["queue"], charge["async"]) == (90.0, "cards", False)
    assert charge["description"] == "Charge the card."
    value, rest, named = told()["anything"]["parameters"]
    assert (value["type"], rest["takes"], named["takes"]) == (None, "values", "any name")


def test_a_model_of_another_library_describes_itself() -> None:
    Path("models.py").write_text(
        "from perdure import step\n"
        "class Model:\n"
        "    @classmethod\n"
        "    def model_validate(cls, value): ...\n"
        "    @classmethod\n"
        "    def model_json_schema(cls, ref_template):\n"
        "        ref = ref_template.format(model='Part')\n"
        "        return {'title': 'Model', 'properties': {'part': {'$ref': ref}},"
        " '$defs': {'Part': {}}}\n"
        "@step\n"
        "def take(model: Model) -> Model: ...\n",
        encoding="utf-8",
    )
    found = json.loads(perdure("steps", "--app", "models.py", "--json").stdout)["steps"][0]
    assert found["input"]["properties"]["model"]["title"] == "Model"
    assert found["output"]["$defs"] == {"Part": {}}


def test_without_an_app_or_with_a_wrong_name_it_says_what_to_do() -> None:
    assert "--app steps.py" in perdure("steps", code=2).stderr
    said = perdure("steps", "nope", "--app", "shop.py", code=2).stderr
    assert "shop.py has no step nope (it has: anything, charge, nothing, odd)" in said
    Path("empty.py").write_text("NONE = []", encoding="utf-8")
    assert "no steps in empty:NONE" in perdure("steps", "--app", "empty:NONE").stderr
