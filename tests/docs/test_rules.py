"""Every promised rule is proven by a test that names it, or openly waits for one."""

from __future__ import annotations

import re

import pytest

from tests.docs import catalogue
from tests.tidy.tree import ROOT, planted

DESIGN = ROOT.parent / "shared" / "design" / "behaviour.md"


def twice(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def test_every_rule_is_tested_or_waits_or_is_exempt() -> None:
    settled = {*catalogue.tested(), *catalogue.not_yet(), *catalogue.cannot_apply()}
    assert [rule for rule in catalogue.catalogued() if rule not in settled] == []


def test_no_tested_rule_still_waits_or_is_exempt() -> None:
    tested = set(catalogue.tested())
    left = [rule for rule in catalogue.not_yet() if rule in tested]
    assert left == [], "tested by now: remove them from tests/docs/not_yet.txt"
    assert [rule for rule in catalogue.cannot_apply() if rule in tested] == []


def test_every_mark_names_a_catalogued_rule() -> None:
    known = set(catalogue.catalogued())
    strays = {rule: at for rule, at in catalogue.tested().items() if rule not in known}
    assert strays == {}


def test_the_lists_name_catalogued_rules_once() -> None:
    known = set(catalogue.catalogued())
    waiting, exempt = catalogue.not_yet(), catalogue.cannot_apply()
    assert twice(catalogue.catalogued()) == []
    assert twice([*waiting, *exempt]) == []
    assert [rule for rule in [*waiting, *exempt] if rule not in known] == []


def test_the_catalogue_has_the_rules_of_the_design() -> None:
    if not DESIGN.exists():
        pytest.skip("the design pages do not lie beside this tree: catalogue not compared")
    text = DESIGN.read_text(encoding="utf-8")
    # A rule opens a line, a row or a sentence; elsewhere its id is a reference.
    opens = r"(?:^- (?=\S+ )|^\| (?=\S+ \|)|[.;] (?=\S+ [A-Z]))((?:D|G|S|SX|W)-\d+)\b"
    assert sorted(catalogue.catalogued()) == sorted(set(re.findall(opens, text, re.MULTILINE)))


def test_marks_are_found_wherever_pytest_takes_them() -> None:
    text = """
pytestmark = pytest.mark.rule("A-1")
@pytest.mark.rule("A-2", "A-3")
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("A-4"))])
def test_x(x): ...
@mark.rule(NAME)
def test_y(): ...
"""
    found = [rule for rule, _ in catalogue.marks(planted(text, "tests/x.py"))]
    assert sorted(found) == ["?", "A-1", "A-2", "A-3", "A-4"]
