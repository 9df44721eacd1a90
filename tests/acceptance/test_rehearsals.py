"""The rehearsals of the approval example hold, take every edge, and are drawn as the page shows."""

from __future__ import annotations

import re

import pytest

from perdure.testing import coverage, rehearse
from tests.tidy.tree import ROOT

pytest.importorskip("yaml", reason="documents in YAML need the extra `yaml`")
APPROVAL = ROOT / "examples" / "approval" / "approval.yaml"
MOCKS = sorted(APPROVAL.with_name("rehearsals").glob("*.yaml"))
HOWTO = ROOT / "docs" / "howto"


@pytest.mark.parametrize("mocks", MOCKS, ids=lambda path: path.stem)
def test_a_rehearsal_of_the_example_is_as_expected(mocks: object) -> None:
    rehearse(APPROVAL, mocks).check()  # type: ignore[arg-type]


def test_together_they_take_every_edge() -> None:
    assert coverage(rehearse(APPROVAL, mocks) for mocks in MOCKS).missed == ()


def test_the_drawing_of_the_page_is_that_of_a_rehearsal() -> None:
    again = (
        "draw it again: perdure rehearse examples/approval/approval.yaml "
        "-m examples/approval/rehearsals/approved.yaml --draw docs/howto/approval.svg"
    )
    drawn = rehearse(APPROVAL, APPROVAL.with_name("rehearsals") / "approved.yaml").svg()
    assert (HOWTO / "approval.svg").read_text(encoding="utf-8") == drawn, again


def test_the_story_of_the_page_is_that_of_the_rehearsal() -> None:
    told = rehearse(APPROVAL, APPROVAL.with_name("rehearsals") / "approved.yaml").story()
    page = (HOWTO / "rehearse.md").read_text(encoding="utf-8")
    assert told in re.findall(r"```text\n(.*?)```", page, re.DOTALL)[0]


def test_the_pytest_example_of_the_page_passes() -> None:
    page = (HOWTO / "rehearse.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "rehearse.md", "exec"), names)  # the page's own
    names["test_it_is_shipped_once_somebody_says_yes"]()  # type: ignore[operator]
    for silent in ("2d", "9d"):
        names["test_nobody_says_yes_in_time"](silent)  # type: ignore[operator]
