"""What an expression reads is told from its text, and when in doubt too much and not too little."""

from __future__ import annotations

import pytest

from perdure.expr import References, compile_expression, compile_template


def refs(text: str) -> References:
    return compile_expression(text).refs


def test_roots_are_the_free_names() -> None:
    assert refs("input.a + other[x].b(c)").roots == {"input", "other", "x", "c"}
    assert refs("math.abs(1) + size([]) + int('1')").roots == set()
    assert refs("type(x) == int || type(x) == google.protobuf.Timestamp").roots == {"x"}


def test_the_variable_of_a_macro_is_no_read() -> None:
    assert refs("[1].map(tasks, tasks)") == References()
    assert refs("l.filter(x, x.a == y)").roots == {"l", "y"}
    assert refs("cel.bind(t, tasks.a.output, t + 1)").tasks == {"a"}
    assert refs("tasks.a.output.map(tasks, tasks.b.output)").tasks == {"a"}
    assert refs("[1].map(tasks, .tasks.b.output)").tasks == {"b"}
    assert refs("[1].map(t, 1) + [tasks.t.output]").tasks == {"t"}


def test_tasks_are_told_by_name_or_by_a_constant_key() -> None:
    found = refs('tasks.a.output.n + tasks["send-mail"].output[0] + tasks.c.status')
    assert found.tasks == {"a", "send-mail", "c"}
    assert found.task_fields == {("a", "output"), ("send-mail", "output"), ("c", "status")}
    assert found.computed is False


@pytest.mark.parametrize(
    "text",
    ["tasks[x].output", "tasks", "[tasks]", "tasks.map(t, t)", "size(tasks)", "tasks == null",
     "tasks[input.id]", "'a' + x in tasks", "tasks[0]", "cel.bind(t, tasks, t.a)", "f(tasks)"],
)  # fmt: skip
def test_a_read_of_tasks_that_cannot_be_told_is_flagged(text: str) -> None:
    assert refs(text).computed is True


def test_a_task_read_whole_counts_as_reading_all_of_it() -> None:
    every = {("a", "output"), ("a", "status"), ("a", "error")}
    assert refs("tasks.a").task_fields == every
    assert refs("tasks.a[x]").task_fields == every
    assert refs("tasks.?a.orValue({})").task_fields == every
    assert refs("has(tasks.a)").task_fields == set()
    assert refs("'a' in tasks") == refs("'a' in tasks")
    assert refs("'a' in tasks").tasks == {"a"}
    assert refs("'a' in tasks").computed is False


@pytest.mark.parametrize(
    "text",
    [
        "has(tasks.a.output)",
        "has(tasks.a.output) ? tasks.a.output.n : 0",
        "!has(tasks.a.output) ? 0 : tasks.a.output.n",
        "has(tasks.a.output) && tasks.a.output.n > 1",
        "tasks.a.output.n > 1 && has(tasks.a.output)",
        "!has(tasks.a.output) || tasks.a.output.n > 1",
        "tasks.a.?output.n.orValue(0)",
        "tasks.?a.output.n.orValue(0)",
        "tasks[?'a'].output",
        "tasks.a.status == 'completed' ? tasks.a.output : null",
        "tasks.a.status != 'completed' ? null : tasks.a.output",
        "has(tasks.a.output) && input.x && [1].exists(i, i == tasks.a.output)",
    ],
)
def test_a_protected_read_of_an_output_is_told_as_guarded(text: str) -> None:
    assert refs(text).guarded == {"a"}


@pytest.mark.parametrize(
    "text",
    [
        "tasks.a.output.n",
        "tasks.a.output.?n",
        "has(tasks.a.output.n)",
        "has(tasks.b.output) ? tasks.a.output : 0",
        "has(tasks.a.output) ? 0 : tasks.a.output",
        "has(tasks.a.output) || tasks.a.output.n > 1",
        "(has(tasks.a.output) ? tasks.a.output : 0) + tasks.a.output",
        "tasks.a",
    ],
)
def test_an_unprotected_read_of_an_output_is_not(text: str) -> None:
    assert "a" not in refs(text).guarded


def test_secrets_are_told_by_name() -> None:
    assert refs("secrets.API_KEY + secrets['other']").secrets == {"API_KEY", "other"}


def test_positions_point_at_the_first_read() -> None:
    found = refs("input.a +\n tasks.one.output + tasks.one.status")
    assert found.root_positions == {"input": (1, 1), "tasks": (2, 2)}
    assert found.task_positions == {"one": (2, 8)}


def test_a_template_merges_the_reads_of_its_strings() -> None:
    template = compile_template(
        {
            "a": "{{ tasks.x.output }} {{ input.b }}",
            "c": ["{{ has(tasks.y.output) }}", "{{ tasks.?x.output.orValue(1) }}"],
        }
    )
    assert template.refs.roots == {"tasks", "input"}
    assert template.refs.tasks == {"x", "y"}
    assert template.refs.guarded == {"y"}
    assert template.refs.task_positions == {"x": (1, 10), "y": (1, 14)}
