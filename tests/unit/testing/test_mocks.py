"""Mocks: what is misspelt or does not fit the document is refused, and says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.model.errors import InvalidRequest
from perdure.testing import rehearse
from tests.unit.testing.documents import ORDER, SMALL, chain, http


@pytest.mark.parametrize(
    ("mocks", "said"),
    [
        ({"step": {}}, "mocks: unknown key 'step'; did you mean \"steps\"?"),
        ({"steps": []}, 'mocks: "steps" must be an object: node id or step name → answer'),
        ({"steps": {"fetsh": 1}}, 'steps.fetsh: order has no such node or step; did you mean "fe'),
        ({"steps": {"review": 1}}, 'node review is a WAIT_FOR_SIGNAL: send it its signal under "s'),
        ({"steps": {"route": 1}}, "node route is a SWITCH: the engine answers for it"),
        ({"steps": {"ship": []}}, "steps.ship: an empty list answers no attempt"),
        ({"steps": {"ship": {"fail": 1}}}, 'steps.ship: "fail" must be text, not 1'),
        (
            {"steps": {"ship": [1, {"fail": "x", "knd": "y"}]}},
            "steps.ship[1]: 'knd' means nothing here; did you mean \"kind\"?",
        ),
        ({"steps": {"ship": {"delay": "3 parsecs", "result": 1}}}, "'3 parsecs' is not a duration"),
        ({"steps": {"ship": {"delay": "3s", "price": 1}}}, 'is "delay" a part of the result?'),
        ({"signals": {"name": "x"}}, 'mocks: "signals" must be a list of'),
        ({"signals": [{"at": "5m"}]}, 'signals[0]: write {"name": "approved"'),
        ({"signals": [{"name": "x", "when": 1}]}, "signals[0]: unknown key 'when'; use one of:"),
        ({"signals": [{"name": "x", "at": "soon"}]}, "'soon' is not a duration"),
        (
            {"cancel": {"reson": "x"}},
            "mocks: cancel: unknown key 'reson'; did you mean \"reason\"?",
        ),
        ({"now": "yesterday"}, "mocks: now: write a time with its zone"),
        ({"now": "2030-01-01T00:00:00"}, "mocks: now: write a time with its zone"),
    ],
)
def test_a_mistake_is_told_with_its_place(mocks: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        rehearse(ORDER, mocks)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("ok", 'steps.pay: an HTTP node answers {"status": 200, "body": …}'),
        ({"status": 99}, '"status" must be a number from 100 to 599, not 99'),
        ({"status": "200"}, "\"status\" must be a number from 100 to 599, not '200'"),
        ({"header": {}}, "'header' means nothing here; did you mean \"headers\"?"),
        ({"headers": {"x": 1}}, '"headers" must be an object of texts'),
    ],
)
def test_an_answer_that_is_no_response_is_refused(reply: Any, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        rehearse(chain(http("pay")), {"steps": {"pay": reply}})
    assert said in str(caught.value)


def test_a_result_that_looks_like_an_instruction_is_wrapped() -> None:
    wrapped = {"steps": {"fetch": {"total": 1}, "ship": {"result": {"fail": "no"}}}}
    assert rehearse(ORDER, wrapped).output == {"tracking": {"fail": "no"}}


def test_mocks_are_read_from_json_and_yaml(tmp_path: Path) -> None:
    plain = tmp_path / "mocks.json"
    plain.write_text('{"steps": {"fetch": {"total": 9}, "ship": "T1"}}', encoding="utf-8")
    yaml = tmp_path / "mocks.yaml"
    yaml.write_text("steps:\n  fetch: {total: 9}\n  ship: T1\n", encoding="utf-8")
    assert rehearse(ORDER, plain).route == rehearse(ORDER, str(yaml)).route
    assert rehearse(ORDER, plain).history[-1]["output"] == rehearse(ORDER, SMALL).output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"steps": }', "the file is not JSON"),
        ('{"steps": {}, "steps": {}}', "this key is written more than once"),
        ("[]", "the file is a list, not an object"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_by_its_name(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidRequest) as caught:
        rehearse(ORDER, file)
    assert f"{file}: " in str(caught.value)
    assert said in str(caught.value)
    with pytest.raises(InvalidRequest, match=r"gone\.json: the file cannot be read: No such file"):
        rehearse(ORDER, tmp_path / "gone.json")
