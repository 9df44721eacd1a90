"""Mermaid: names, shapes and labels that no renderer can take for anything else."""

from __future__ import annotations

import re

import pytest

from tests.unit.graph.draw.pictures import CHOICE, HISTORY, graph, task


def test_shapes_tell_types_and_labels_what_is_done() -> None:
    assert CHOICE.mermaid() == (
        "flowchart TD\n"
        '    begin["The very beginning<br><small>begin · step work · up to 3×</small>"]\n'
        '    route{"route"}\n'
        '    ask(["ask<br><small>signal yes · 60 s</small>"])\n'
        '    later(["later<br><small>2h</small>"])\n'
        '    n_end[["end<br><small>GET a.test#47;#123;input.id#125;</small>"]]\n'
        "    begin --> route\n"
        '    route -->|"begin.total #62; 500"| ask\n'
        '    route -->|"default"| later\n'
        "    ask --> n_end\n"
        "    later --> n_end\n"
    )


def test_a_run_is_told_by_signs_arrows_and_classes() -> None:
    text = CHOICE.mermaid(HISTORY)
    assert "✓ completed, attempt 2" in text
    assert "▶ running" in text
    assert 'route ==>|"default"| later' in text
    assert 'route -.->|"begin.total #62; 500"| ask' in text
    assert "class begin,route,later is_completed" in text
    assert "class ask is_skipped" in text
    assert "is_pending" not in text


@pytest.mark.parametrize("id", ["end", "graph", "subgraph", "Class", "style", "LR", "v", "x", "_"])
def test_an_id_that_means_something_to_mermaid_is_changed(id: str) -> None:
    drawn = graph([task("first"), task(id)], [f"first {id}"]).mermaid()
    assert f"    first --> n_{id}\n" in drawn


def test_ids_stay_apart_when_their_signs_are_replaced() -> None:
    drawn = graph([task("a-b"), task("a_b"), task("a_b_2")], ["a-b a_b", "a_b a_b_2"]).mermaid()
    assert "    a_b --> a_b_2\n    a_b_2 --> a_b_2_2\n" in drawn


@pytest.mark.parametrize(
    "label",
    [
        'a "b"',
        "[x](y)",
        "`code`",
        "**b**",
        "<b>&</b>",
        "a|b",
        "{{x}}",
        "#35;",
        "a; b",
        "%% c",
        "a\\n",
    ],
)
def test_no_sign_of_a_label_is_markup(label: str) -> None:
    line = graph([task("only", label=label)], []).mermaid().splitlines()[1]
    found = re.fullmatch(r'    only\["(.*)<br><small>only · step work</small>"\]', line)
    assert found is not None
    assert re.fullmatch(r"[\w .,·…×-]|(?:[\w .,·…×-]|#\d+;)+", found[1])
    assert re.sub(r"#(\d+);", lambda code: chr(int(code[1])), found[1]) == label


@pytest.mark.parametrize("label", ["1. first", "- first"])
def test_a_label_is_no_list(label: str) -> None:
    text = graph([task("only", label=label)], []).mermaid()
    assert label not in text


def test_letters_of_every_language_stay() -> None:
    assert '"Überprüfung 注文<br>' in graph([task("only", label="Überprüfung 注文")], []).mermaid()


def test_what_is_long_is_cut() -> None:
    condition = "{{" + " || ".join(f"input.value == {n}" for n in range(40)) + "}}"
    drawn = graph(
        [{"id": "route", "type": "SWITCH"}, task("only", label="x" * 200)],
        [{"from": "route", "to": "only", "condition": condition}],
    ).mermaid()
    assert max(len(line) for line in drawn.splitlines()) < 160
    assert drawn.count("…") == 2
