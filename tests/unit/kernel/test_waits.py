"""WAIT: parked until its time, or over at once; never given to a worker."""

from __future__ import annotations

import msgspec
import pytest

from perdure.kernel.actions import CreateTask, ResolveWait
from perdure.kernel.events import NodeCompleted, NodeFailed
from perdure.model.durations import SECOND
from perdure.model.failure import FailureRecord
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, cond, edge, fork, join, sw, task, wait, wait_for
from tests.unit.kernel.harness import (
    NEW_YEAR,
    Harness,
    created,
    dispatched,
    failure_of,
    finish,
    input_of,
    of,
    plan_of,
    text,
)

MINUTE = 60 * SECOND


@pytest.mark.rule("G-73", "G-24")
def test_a_wait_parks_with_its_resolved_input_and_no_worker_sees_it(draw: Draw) -> None:
    h = draw([wait("w", duration_seconds="{{input.delay}}"), task("z")], chain("w", "z"))
    start = h.start({"delay": 60})
    (created,) = of(start, CreateTask)
    assert (created.status, created.wake_at) == ("waiting", NEW_YEAR + MINUTE)
    assert created.awaited_signal is None
    assert input_of(start, "w") == {"duration_seconds": 60}
    assert dispatched(start) == []
    state = h.nodes["w"]
    assert (state.status, state.wake_at, h.run.active) == ("waiting", NEW_YEAR + MINUTE, 1)


@pytest.mark.rule("G-87", "G-29", "G-77")
def test_its_timer_completes_it_and_the_branch_goes_on(draw: Draw) -> None:
    h = draw([wait("w", duration="1m"), task("z", "{{tasks.w.output.woke_at}}")], chain("w", "z"))
    h.start()
    h.now = NEW_YEAR + MINUTE + 250_000
    step = h.fire("w")
    (resolved,) = of(step, ResolveWait)
    assert (resolved.task, resolved.status, resolved.failure) == ("t001", "completed", None)
    assert msgspec.json.decode(resolved.output) == {"woke_at": "2025-01-01T00:01:00.250000Z"}
    assert (h.status("w"), h.nodes["w"].wake_at, h.nodes["w"].completed_no) == (
        "completed",
        None,
        1,
    )
    assert dispatched(step) == ["z"]
    assert input_of(step, "z")["input"] == "2025-01-01T00:01:00.250000Z"


@pytest.mark.rule("G-76", "G-77", "G-53")
@pytest.mark.parametrize(
    "spec",
    [
        {"duration": 0},
        {"duration_seconds": "0"},
        {"until": "2025-01-01T00:00:00Z"},
        {"until": "1999-01-01T00:00:00+02:00"},
    ],
)
def test_a_wait_that_is_over_completes_at_once_and_routing_goes_on(
    draw: Draw, spec: dict[str, object]
) -> None:
    h = draw([wait("w", **spec), task("z")], chain("w", "z"))
    start = h.start()
    assert (created(start, "completed"), dispatched(start)) == (["w"], ["z"])
    (first, _) = of(start, CreateTask)
    assert msgspec.json.decode(first.output) == {"woke_at": "2025-01-01T00:00:00.000000Z"}
    assert first.wake_at is None


@pytest.mark.rule("G-74")
def test_until_wins_over_a_duration(draw: Draw) -> None:
    h = draw([wait("w", until="{{input.at}}", duration="1s")], [])
    h.start({"at": "2025-01-01T01:00:00+00:30"})
    assert h.nodes["w"].wake_at == NEW_YEAR + 30 * MINUTE


@pytest.mark.rule("G-74")
def test_a_template_may_give_a_time_or_a_duration_of_its_own_type(draw: Draw) -> None:
    nodes = [
        fork("f"),
        wait("at", until="{{system.now + duration('90m')}}"),
        wait("of", duration="{{duration('90m')}}"),
    ]
    h = draw(nodes, [edge("f", "at"), edge("f", "of")])
    h.start()
    assert h.nodes["at"].wake_at == h.nodes["of"].wake_at == NEW_YEAR + 90 * MINUTE


@pytest.mark.rule("G-73")
def test_the_whole_spec_may_be_one_template(draw: Draw) -> None:
    h = draw([{"id": "w", "type": "WAIT", "spec": "{{input.spec}}"}], [])
    h.start({"spec": {"duration_seconds": 60}})
    assert h.nodes["w"].wake_at == NEW_YEAR + MINUTE


@pytest.mark.parametrize(
    ("nodes", "input", "reason"),
    [
        ([wait("w", duration_seconds="{{input.d}}")], {"d": -1}, "must be a non-negative number"),
        ([wait("w", duration="{{input.d}}")], {"d": "soon"}, "is not a duration"),
        ([wait("w", until="{{input.d}}")], {"d": 5}, "until must be a time in RFC 3339"),
        ([wait("w", duration="{{input.gone}}")], {}, "gone"),
        ([{"id": "w", "type": "WAIT", "spec": "{{input.d}}"}], {"d": {"until_": 1}}, "until_"),
        ([wait_for("w", "{{input.d}}")], {"d": ""}, "signal must be a name"),
        ([wait_for("w", "go", timeout="{{input.d}}")], {"d": "-1"}, "negative"),
        ([{"id": "w", "type": "WAIT_FOR_SIGNAL", "spec": "{{input.d}}"}], {"d": {}}, "signal"),
    ],
)
@pytest.mark.rule("G-74", "G-75", "G-78", "G-79", "G-88")
def test_whatever_is_wrong_with_its_spec_fails_the_node_and_nothing_else(
    draw: Draw, nodes: list[dict[str, object]], input: object, reason: str
) -> None:
    h = draw([fork("f"), *nodes, task("z"), task("b")],
             [*chain("f", "w", "z"), edge("f", "b")])  # fmt: skip
    start = h.start(input)
    failure = failure_of(start, "w")
    assert (failure.kind, failure.permanent) == ("input", True)
    assert failure.message.startswith(("node w cannot wait: ", "the input of node w cannot"))
    assert reason in failure.message
    assert (h.status("w"), h.status("z"), h.run.status) == ("failed", "unreached", "running")
    assert dispatched(start) == ["b"]
    assert reason in finish(h.complete("b")).failure.message


@pytest.mark.rule("D-12")
def test_a_template_that_became_null_fails_the_node(draw: Draw) -> None:
    for nodes in ([wait("w", duration="{{input.d}}")], [wait("w", until="{{input.d}}")],
                  [wait_for("w", "go", timeout_seconds="{{input.d}}")]):  # fmt: skip
        h = draw(nodes, [])
        assert "null" in failure_of(h.start({"d": None}), "w").message


@pytest.mark.rule("G-75", "G-78", "D-12")
def test_a_null_that_was_written_is_as_good_as_absent(draw: Draw) -> None:
    h = draw([fork("f"), wait("w", duration="1m", until=None), wait_for("s", "go", timeout=None)],
             [edge("f", "w"), edge("f", "s")])  # fmt: skip
    h.start()
    assert (h.nodes["w"].wake_at, h.nodes["s"].wake_at) == (NEW_YEAR + MINUTE, None)


@pytest.mark.rule("G-73")
def test_a_resolved_spec_that_cannot_be_obeyed_is_recorded_for_people(draw: Draw) -> None:
    h = draw([wait("w", duration_seconds="{{input.d}}")], [])
    assert input_of(h.start({"d": "x"}), "w") == {"duration_seconds": "x"}


@pytest.mark.rule("G-53", "G-76")
def test_waits_in_a_row_each_begin_when_the_one_before_is_over(draw: Draw) -> None:
    # scenario 211: each branch goes on by itself
    h = draw(
        [fork("f"), wait("w1", duration="1m"), wait("w2", duration="1m"), wait("w3", duration=0),
         task("z"), wait("v", duration="90s"), join("j")],
        [*chain("f", "w1", "w2", "w3", "z", "j"), *chain("f", "v", "j")],
    )  # fmt: skip
    h.start()
    assert created(h.fire("w1"), "waiting") == ["w2"]
    assert h.nodes["w2"].wake_at == NEW_YEAR + 2 * MINUTE
    h.fire("v")
    step = h.fire("w2")
    assert (created(step, "completed"), dispatched(step)) == (["w3"], ["z"])
    assert finish(h.complete("z")).status == "completed"


@pytest.mark.rule("G-46")
def test_a_wait_alone_keeps_its_run_going_and_its_branch_open(draw: Draw) -> None:
    # scenario 237: the wait is the last of its branch, and the join is behind it
    h = draw([fork("f"), task("a"), wait("w", duration="1m"), join("j")],
             [*chain("f", "a", "j"), *chain("f", "w", "j")])  # fmt: skip
    h.start()
    h.complete("a")
    assert (h.run.status, h.status("j")) == ("running", "unreached")
    assert finish(h.fire("w")).status == "completed"


@pytest.mark.rule("G-48", "G-54")
def test_a_wait_on_a_branch_not_taken_is_skipped_and_holds_nothing_up(draw: Draw) -> None:
    # scenario 236
    h = draw(
        [sw("s"), wait("w", duration="24h"), wait_for("g", "go"), task("z")],
        [cond("s", "w", "false"), cond("s", "g", "false"), edge("s", "z"), edge("w", "z"),
         edge("g", "z")],
    )  # fmt: skip
    start = h.start()
    assert (created(start, "skipped"), dispatched(start)) == (["w", "g"], ["z"])
    assert finish(h.complete("z")).status == "completed"


@pytest.mark.rule("G-35", "G-73")
def test_a_waiting_node_takes_no_reports(draw: Draw) -> None:
    h = draw([wait("w", duration="1m")], [])
    h.start()
    for event in (
        NodeCompleted("t001", "w", 0, text({})),
        NodeFailed("t001", "w", 0, FailureRecord("Error", "boom")),
    ):
        assert h.apply(event).ignored == "node w waits, and takes no report"


@pytest.mark.rule("G-58")
def test_a_switch_passes_the_output_of_a_wait_through(draw: Draw) -> None:
    h = draw([wait_for("w", "go"), sw("s"), task("z", "{{tasks.s.output}}")], chain("w", "s", "z"))
    h.start()
    assert input_of(h.signal("go", [1, 2]), "z")["input"] == [1, 2]


@pytest.mark.rule("G-69", "G-73")
def test_what_a_wait_reads_is_loaded_like_any_input() -> None:
    plan = plan_of([task("a"), task("b"), wait("w", duration="{{tasks.a.output.d}}")],
                   chain("a", "b", "w"))  # fmt: skip
    h = Harness(plan)
    h.start()
    h.complete("a", {"d": "1m"})
    h.complete("b")
    assert (h.loads, h.nodes["w"].wake_at) == ([("a",)], NEW_YEAR + MINUTE)


@pytest.mark.rule("D-26")
def test_a_wait_counts_from_when_it_was_reached(draw: Draw) -> None:
    h = draw([task("a"), wait("w", duration="1m")], chain("a", "w"))
    h.start()
    h.advance(3600)
    h.complete("a")
    assert h.nodes["w"].wake_at == NEW_YEAR + 61 * MINUTE
