"""What a worker is given: the spec with its templates resolved once, as plain JSON."""

from __future__ import annotations

import msgspec
import pytest

from perdure.kernel.actions import CreateTask, DispatchTask
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, cond, edge, fork, http, otherwise, sw, task
from tests.unit.kernel.harness import (
    Harness,
    created,
    dispatched,
    failure_of,
    finish,
    input_of,
    kinds,
    of,
    plan_of,
)


@pytest.mark.rule("G-65", "G-66", "G-25", "G-72")
def test_the_input_is_resolved_when_the_node_is_scheduled_and_recorded(draw: Draw) -> None:
    h = draw(
        [task("a"), task("b", {"n": "{{tasks.a.output.n + 1}}", "t": "got {{tasks.a.output.n}}"})],
        chain("a", "b"),
    )
    h.start()
    step = h.complete("a", {"n": 41})
    assert input_of(step, "b") == {"step": "work", "input": {"n": 42, "t": "got 41"}}
    (order,) = of(step, DispatchTask)
    assert (order.task, order.attempt, order.not_before) == (h.nodes["b"].task, 0, 0)


@pytest.mark.rule("G-66")
def test_what_looks_like_a_template_in_data_is_never_evaluated(draw: Draw) -> None:
    # scenarios 274, 275: one pass over the definition's own text
    h = draw([task("a", {"v": "{{input.v}}", "w": "<{{input.v}}>"})], [])
    evil = "{{secrets.key}} {{1 + 1}}"
    assert input_of(h.start({"v": evil}), "a")["input"] == {"v": evil, "w": f"<{evil}>"}


@pytest.mark.rule("G-67")
def test_a_string_that_is_one_template_keeps_the_type_of_its_value(draw: Draw) -> None:
    h = draw([task("a", "{{input.all}}")], [])
    assert input_of(h.start({"all": {"x": [1, 2.5, None, True]}}), "a")["input"] == {
        "x": [1, 2.5, None, True]
    }


@pytest.mark.rule("G-68")
def test_an_input_that_cannot_be_resolved_fails_its_node_alone(draw: Draw) -> None:
    # scenario 228: never waited for, never looped on
    bad = task("bad", {"x": "{{input.nothing.here}}"}, retry={"attempts": 5})
    h = draw([fork("f"), bad, task("b"), task("c")], [*chain("f", "bad", "c"), *chain("f", "b")])
    start = h.start({})
    assert created(start, "failed") == ["bad"]
    assert dispatched(start) == ["b"]
    failure = failure_of(start, "bad")
    assert (failure.kind, failure.permanent) == ("input", True)
    assert "node bad" in failure.message
    end = finish(h.complete("b"))
    assert (end.status, h.status("c")) == ("failed", "unreached")


@pytest.mark.rule("G-68")
def test_a_missing_value_is_an_error_and_null_is_a_value(draw: Draw) -> None:
    # scenario 272
    h = draw([task("a", {"x": "{{input.v}}"})], [])
    assert input_of(h.start({"v": None}), "a")["input"] == {"x": None}
    other = draw([task("a", {"x": "{{input.v}}"})], [])
    assert created(other.start({}), "failed") == ["a"]


@pytest.mark.rule("G-68")
def test_a_value_json_cannot_hold_fails_the_node(draw: Draw) -> None:
    h = draw([task("a", {"x": "{{1.0 / input.zero}}"})], [])
    failure = failure_of(h.start({"zero": 0.0}), "a")
    assert failure.kind == "input"


@pytest.mark.rule("D-14")
def test_reading_a_skipped_nodes_output_fails_the_reader_and_says_so(draw: Draw) -> None:
    # scenario 228
    h = draw(
        [sw("s"), task("a"), task("b"), task("z", {"x": "{{tasks.a.output.x}}"})],
        [cond("s", "a", "input.a"), otherwise("s", "b"), edge("a", "z"), edge("b", "z")],
    )
    h.start({"a": False})
    failure = failure_of(h.complete("b"), "z")
    assert "node a has no output: it was skipped" in failure.message


@pytest.mark.rule("D-14")
def test_a_skipped_nodes_status_can_be_asked(draw: Draw) -> None:
    ask = {
        "a": "{{tasks.a.status}}",
        "b": "{{tasks.b.status}}",
        "x": "{{has(tasks.a.output) ? tasks.a.output.x : 'none'}}",
    }
    h = draw(
        [sw("s"), task("a"), task("b"), task("z", ask)],
        [cond("s", "a", "input.a"), otherwise("s", "b"), edge("a", "z"), edge("b", "z")],
    )
    h.start({"a": False})
    assert input_of(h.complete("b"), "z")["input"] == {
        "a": "skipped", "b": "completed", "x": "none",
    }  # fmt: skip


@pytest.mark.rule("D-26")
def test_system_now_is_the_time_of_the_event_in_every_node_of_it(draw: Draw) -> None:
    now = {"at": "{{string(system.now)}}"}
    h = draw([task("a"), task("b", now), task("c", now)], [*chain("a", "b"), *chain("a", "c")])
    h.start()
    h.advance(90)
    step = h.complete("a")
    assert input_of(step, "b")["input"] == input_of(step, "c")["input"]
    assert input_of(step, "b")["input"]["at"] == "2025-01-01T00:01:30Z"


@pytest.mark.rule("D-26")
def test_each_event_has_a_time_of_its_own(draw: Draw) -> None:
    now = {"at": "{{string(system.now)}}"}
    h = draw([task("a", now), task("b", now)], chain("a", "b"))
    assert input_of(h.start(), "a")["input"]["at"] == "2025-01-01T00:00:00Z"
    h.advance(1)
    assert input_of(h.complete("a"), "b")["input"]["at"] == "2025-01-01T00:00:01Z"


@pytest.mark.rule("G-18", "G-105")
def test_templates_read_input_config_and_the_runs_identity(draw: Draw) -> None:
    spec = {
        "input": "{{input.who}}",
        "config": "{{config.region}}",
        "run": "{{system.workflow + '/' + system.run_id + '@' + system.version}}",
    }
    h = draw([task("a", spec)], [], version="v7")
    assert input_of(h.start({"who": "ann"}, config={"region": "eu"}), "a")["input"] == {
        "input": "ann", "config": "eu", "run": "g/r1@v7",
    }  # fmt: skip


@pytest.mark.rule("G-66")
def test_a_secrets_text_stays_a_template_and_is_listed_by_its_place(draw: Draw) -> None:
    spec = {"url": "https://shop.test/", "headers": {"Authorization": "Bearer {{secrets.token}}"}}
    h = draw([{"id": "a", "type": "HTTP", "spec": spec}], [])
    (created_task,) = of(h.start(), CreateTask)
    assert created_task.secrets == {"/headers/Authorization": "Bearer {{secrets.token}}"}
    assert msgspec.json.decode(created_task.input)["headers"]["Authorization"] == (
        "Bearer {{secrets.token}}"
    )


@pytest.mark.rule("G-25")
def test_a_nodes_queue_goes_with_its_dispatch() -> None:
    plan = plan_of([http("a"), http("b")], chain("a", "b"))
    nodes = {**plan.nodes, "a": msgspec.structs.replace(plan.nodes["a"], queue="slow")}
    h = Harness(msgspec.structs.replace(plan, nodes=nodes))
    assert of(h.start(), DispatchTask)[0].queue == "slow"
    assert of(h.complete("a"), DispatchTask)[0].queue is None


@pytest.mark.rule("G-65")
def test_a_changed_graph_does_not_change_an_input_already_recorded(draw: Draw) -> None:
    h = draw([task("a", {"v": "{{input.v}}"}), task("b")], chain("a", "b"))
    start = h.start({"v": 1})
    assert kinds(start) == ["OpenRun", "CreateTask", "DispatchTask"]
    assert all(getattr(action, "input", None) is None for action in h.complete("a").actions[:1])
