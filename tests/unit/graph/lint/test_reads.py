"""Reads of what is not there: fields of the engine's own, of the input, states no task has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.graph.documents import document, problems, task, warnings


def reading(text: Any, **rest: Any) -> dict[str, Any]:
    """`r` reads the text, after an HTTP `h`, a TASK `a` and a FORK `f`."""
    drawn = document("a h f:FORK r x", "a>h h>f f>r f>x", **rest)
    drawn["nodes"][1] = {"id": "h", "type": "HTTP", "spec": {"url": "https://a.test"}}
    drawn["nodes"][3] = task("r", {"x": text})
    return drawn


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{system.runid}}", 'system has no "runid"; did you mean "run_id"?'),
        ("{{tasks.a.outptu.x}}", 'tasks.a has no "outptu"; did you mean "output"?'),
        ("{{tasks.a.total}}", 'tasks.a has no "total"; what a gave is tasks.a.output.total'),
        ("{{tasks.h.output.bdy.x}}", 'h (HTTP) has no "bdy"; did you mean "body"?'),
        ("{{tasks.h.output.total}}", "read as tasks.h.output.body.total"),
        ("{{tasks.f.output.x}}", 'f (FORK) has no "x"; the output of a FORK is empty'),
        ("{{has(tasks.a.reslt)}}", 'tasks.a has no "reslt"'),
    ],
)
def test_a_field_that_never_is_there_is_refused(text: str, said: str) -> None:
    (finding,) = problems(reading(text))
    assert said in f"{finding.message}; {finding.hint}"
    assert finding.pointer == "/nodes/3/spec/input/x"


@pytest.mark.parametrize(
    "text",
    [
        "{{system.now}}{{system.run_id}}{{system.workflow}}{{system.version}}",
        "{{tasks.a.output.anything.at[0].all}}",
        "{{tasks.h.output.status}}{{tasks.h.output.headers.etag}}",
        "{{tasks.h.output.body.x}}",
        "{{tasks.a.status}}",
        "{{tasks['a']['output']}}",
    ],
)
def test_what_is_there_is_fine(text: str) -> None:
    assert warnings(reading(text)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{{tasks.a.status == "success"}}', 'never "success"; did you mean "completed"?'),
        ('{{"Completed" == tasks.a.status}}', 'never "Completed"; did you mean "completed"?'),
        ('{{tasks.a.status in ["completed", "omitted"]}}', 'did you mean "skipped"?'),
        ('{{tasks.a.status == "failed"}}', "nothing after a node that failed is run"),
        ('{{tasks.a.status != "canceled"}}', "nothing after a node that was canceled is run"),
    ],
)
def test_a_status_that_no_task_has_is_told(text: str, said: str) -> None:
    (finding,) = warnings(reading(text))
    assert said in f"{finding.message}; {finding.hint}"


def test_statuses_that_tasks_have_are_fine() -> None:
    assert warnings(reading('{{tasks.a.status == "completed"}}')) == []
    assert warnings(reading('{{tasks.a.status in ["completed", "skipped"]}}')) == []
    assert warnings(reading('{{input.status == "success"}}')) == []


def test_a_secret_whose_name_is_computed_is_told() -> None:
    found = warnings(reading('{{secrets["a" + "b"]}}'))
    assert [f.message for f in found] == ["which secret is read cannot be told from the text"]


def test_an_id_read_with_a_hyphen_is_shown_with_brackets() -> None:
    drawn = document("send-mail b", "send-mail>b")
    drawn["nodes"][1] = task("b", {"x": "{{tasks.send-mail.output}}"})
    assert any('tasks["send-mail"]' in str(finding) for finding in problems(drawn))
