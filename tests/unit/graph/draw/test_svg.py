"""SVG: whole, readable by ear, safe to show, the same for the same input."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.model.errors import InvalidRequest
from tests.unit.graph.draw.pictures import (
    CHOICE,
    FAILURE,
    HISTORY,
    SVG,
    graph,
    groups,
    root_of,
    task,
)


def texts(drawing: str) -> list[str]:
    return [element.text or "" for element in root_of(drawing).iter(f"{SVG}text")]


def test_every_node_and_edge_is_in_the_drawing() -> None:
    found = groups(CHOICE.svg())
    assert list(found) == [
        "begin → route",
        "route → ask: {{tasks.begin.output.total > 500}}",
        "route → later: taken when no condition holds",
        "ask → end",
        "later → end",
        "The very beginning (begin), task",
        "route, switch",
        "ask, wait for signal",
        "later, wait",
        "end, HTTP",
    ]


def test_what_is_written_says_what_each_node_does() -> None:
    assert texts(CHOICE.svg()) == [
        "drawn",
        f"version {CHOICE.version}",
        "begin.total > 500",
        "default",
        "The very beginning",
        "begin · step work · up to 3×",
        "route",
        "ask",
        "signal yes · 60 s",
        "later",
        "2h",
        "end",
        "GET a.test/{input.id}",
    ]


def test_a_run_is_told_by_words_signs_and_classes() -> None:
    found = groups(CHOICE.svg(HISTORY))
    assert "The very beginning (begin), task, completed, attempt 2" in found
    end = found["end, HTTP, running"]
    assert end.get("class") == "of-HTTP is-running"
    assert [t.text for t in end.iter(f"{SVG}text")][-1] == "running"
    assert end.find(f".//{SVG}circle") is not None
    assert found["later → end (taken)"].get("class") == "taken"
    assert found["ask → end (not taken)"].get("class") == "left"
    assert texts(CHOICE.svg(HISTORY))[:2] == ["drawn/d-1", f"running · version {CHOICE.version}"]


def test_what_is_cut_is_whole_in_the_title() -> None:
    label = "A long label " * 8
    drawing = graph([task("only", label=label.strip())], []).svg()
    name = texts(drawing)[2]
    assert name.endswith("…")
    assert label.strip() in drawing
    assert groups(drawing)[f"{label.strip()} (only), task"] is not None


def test_no_text_of_a_document_is_markup() -> None:
    evil = "</title><script>alert(1)</script>\"'&]]>"
    drawn = graph(
        [task("a", label=evil), {"id": "s", "type": "SWITCH"}, task("b")],
        ["a s", {"from": "s", "to": "b", "condition": f"{{{{input.x == '{evil[:33]}'}}}}"}],
        description=evil,
    )
    history = [*HISTORY[:1], {"do": "FailTask", "node": "a", "attempt": 1, "failure": FAILURE}]
    for drawing in (drawn.svg(), drawn.svg(history)):
        tags = {element.tag.removeprefix(SVG) for element in root_of(drawing).iter()}
        assert tags <= {"svg", "title", "desc", "style", "rect", "text", "g", "path", "circle"}
        assert not re.search(r"<script|onload|href|url\(|@import|<!", drawing)
    failed = groups(drawn.svg(history))[f"{evil} (a), task, failed"]
    title = failed.find(f"{SVG}title")
    assert title is not None
    assert (title.text or "").splitlines()[-1] == f"refused: {FAILURE['message']}"


def test_signs_that_xml_cannot_hold_are_replaced() -> None:
    history = [
        {
            "do": "FailTask",
            "node": "end",
            "attempt": 1,
            "failure": {"kind": "x", "message": "\x00\x1b\ud800"},
        }
    ]
    assert "x: \ufffd\ufffd\ufffd" in CHOICE.svg(history)
    root_of(CHOICE.svg(history))


def test_a_drawing_suits_day_and_night_and_needs_nothing() -> None:
    drawing = CHOICE.svg()
    assert "@media (prefers-color-scheme:dark)" in drawing
    assert re.findall(r"https?://[^\s\"<]+", drawing) == ["http://www.w3.org/2000/svg"]
    style = root_of(drawing).find(f"{SVG}style")
    assert style is not None
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", style.text or "")
    assert all(rule.split("{")[-1].startswith(".perdure-graph ") for rule in rules)


def test_the_same_input_gives_the_same_drawing_in_every_process() -> None:
    code = (
        "from tests.unit.graph.draw.pictures import CHOICE, HISTORY\n"
        "import hashlib; print(hashlib.sha256("
        "(CHOICE.svg(HISTORY) + CHOICE.mermaid()).encode()).hexdigest())"
    )
    root = Path(__file__).parents[4]
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, env={"PYTHONHASHSEED": seed}, check=True,
            capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(seen) == 1


def test_a_graph_that_is_too_tangled_is_refused_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("perdure.graph.draw.layers.MOST_SLOTS", 5)
    with pytest.raises(InvalidRequest, match=r"too tangled for an SVG drawing.* as mermaid"):
        CHOICE.svg()
