"""Signals: each to one node, the one that has waited longest, or kept until one asks."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from perdure.kernel.actions import BufferSignal, ConsumeSignal, CreateTask, ResolveWait
from perdure.kernel.events import NodeCompleted, SignalReceived
from perdure.kernel.protocol import Deps, Load
from perdure.model.errors import InvalidRequest, RunFinished, StoreError
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, edge, fork, join, task, wait, wait_for
from tests.unit.kernel.harness import (
    NEW_YEAR,
    Harness,
    created,
    dispatched,
    finish,
    input_of,
    kinds,
    of,
    plan_of,
    shown,
    text,
)


def two_waiters(draw: Draw) -> Harness:
    """Both wait for `go`; b was reached first, later than a in the document."""
    h = draw(
        [fork("f"), task("t"), wait_for("a", "go"), wait_for("b", "go"), join("j")],
        [*chain("f", "t", "a", "j"), *chain("f", "b", "j")],
    )
    h.start()
    h.complete("t")
    assert (h.status("a"), h.status("b")) == ("waiting", "waiting")
    return h


@pytest.mark.rule("G-78", "G-73", "G-24")
def test_a_wait_for_a_signal_parks_under_its_name(draw: Draw) -> None:
    h = draw([wait_for("w", "paid-{{input.order}}", timeout="1h"), task("z")], chain("w", "z"))
    start = h.start({"order": 7})
    (task_created,) = of(start, CreateTask)
    assert (task_created.status, task_created.awaited_signal) == ("waiting", "paid-7")
    assert h.nodes["w"].awaited_signal == "paid-7"
    assert h.nodes["w"].wake_at == task_created.wake_at == NEW_YEAR + 3_600_000_000
    assert dispatched(start) == []


@pytest.mark.rule("G-78")
def test_the_older_spelling_means_the_same(draw: Draw) -> None:
    spec = {"event": "paid", "timeout_seconds": "60"}
    h = draw([{"id": "w", "type": "WAIT_FOR_EVENT", "spec": spec}], [])
    h.start()
    state = h.nodes["w"]
    assert (state.awaited_signal, state.wake_at) == ("paid", NEW_YEAR + 60_000_000)
    assert finish(h.signal("paid", 5)).status == "completed"


@pytest.mark.rule("G-15", "G-83", "G-85", "G-29")
def test_a_signal_completes_the_node_that_waits_with_its_payload(draw: Draw) -> None:
    h = draw([wait_for("w", "go"), task("z", "{{tasks.w.output.by}}")], chain("w", "z"))
    h.start()
    step = h.signal("go", {"by": "ann"})
    assert step.signal_delivered
    assert kinds(step) == ["ResolveWait", "CreateTask", "DispatchTask"]
    (resolved,) = of(step, ResolveWait)
    assert (resolved.status, msgspec.json.decode(resolved.output)) == ("completed", {"by": "ann"})
    assert input_of(step, "z")["input"] == "ann"
    assert (h.nodes["w"].awaited_signal, h.nodes["w"].wake_at) == (None, None)


@pytest.mark.rule("G-81", "G-85", "G-30", "D-34")
def test_a_signal_that_nobody_waits_for_is_kept(draw: Draw) -> None:
    h = draw([task("a"), wait_for("w", "go")], chain("a", "w"))
    h.start()
    step = h.signal("go", {"n": 1})
    assert (kinds(step), step.signal_delivered, step.ignored) == (["BufferSignal"], False, None)
    (kept,) = of(step, BufferSignal)
    assert (kept.signal, kept.name, bytes(kept.payload)) == ("m1", "go", b'{"n":1}')
    assert [signal.id for signal in h.run.signals] == ["m1"]


@pytest.mark.rule("G-80", "G-31", "G-83")
def test_a_signal_that_came_first_is_consumed_when_the_node_is_reached(draw: Draw) -> None:
    # scenario 47: sent before the wait begins, it is not lost
    h = draw([task("a"), wait_for("w", "go"), task("z", "{{tasks.w.output}}")],
             chain("a", "w", "z"))  # fmt: skip
    h.start()
    h.signal("go", 5)
    step = h.complete("a")
    assert kinds(step) == ["CompleteTask", "ConsumeSignal", "CreateTask", "CreateTask",
                           "DispatchTask"]  # fmt: skip
    assert of(step, ConsumeSignal) == [ConsumeSignal("m1", "w")]
    assert (created(step, "completed"), input_of(step, "z")["input"]) == (["w"], 5)
    assert h.run.signals == ()


@pytest.mark.rule("G-80", "D-3")
def test_kept_signals_of_a_name_are_consumed_oldest_first_one_each(draw: Draw) -> None:
    h = draw([task("a"), wait_for("w1", "go"), wait_for("w2", "go"), wait_for("w3", "go")],
             chain("a", "w1", "w2", "w3"))  # fmt: skip
    h.start()
    for name, payload in (("other", 0), ("go", 1), ("go", 2)):
        h.signal(name, payload)
    step = h.complete("a")
    assert [order.signal for order in of(step, ConsumeSignal)] == ["m2", "m3"]
    assert (h.outputs["w1"], h.outputs["w2"]) == (Raw(b"1"), Raw(b"2"))
    assert (h.status("w3"), [s.id for s in h.run.signals]) == ("waiting", ["m1"])


@pytest.mark.rule("D-4", "D-3")
def test_two_waiters_reached_in_one_event_take_different_signals(draw: Draw) -> None:
    # scenario 265
    nodes = [task("a"), fork("f"), *(wait_for(n, "go") for n in ("w1", "w2", "w3"))]
    h = draw(nodes, [edge("a", "f"), *(edge("f", n) for n in ("w1", "w2", "w3"))])
    h.start()
    h.signal("go", 1)
    h.signal("go", 2)
    h.complete("a")
    assert (h.outputs["w1"], h.outputs["w2"]) == (Raw(b"1"), Raw(b"2"))
    assert (h.status("w3"), h.run.signals) == ("waiting", ())


@pytest.mark.rule("D-4")
def test_of_two_waiters_and_one_kept_signal_the_second_parks(draw: Draw) -> None:
    h = draw([task("a"), fork("f"), wait_for("w1", "go"), wait_for("w2", "go")],
             [*chain("a", "f", "w1"), edge("f", "w2")])  # fmt: skip
    h.start()
    h.signal("go")
    h.complete("a")
    assert (h.status("w1"), h.status("w2")) == ("completed", "waiting")


@pytest.mark.rule("G-82", "D-3", "G-103")
def test_the_node_that_has_waited_longest_takes_it_and_no_other(draw: Draw) -> None:
    h = two_waiters(draw)
    first = h.signal("go", 1)
    assert [r.node for r in of(first, ResolveWait)] == ["b"]
    assert (h.status("a"), h.run.status) == ("waiting", "running")
    second = h.signal("go", 2)
    assert [r.node for r in of(second, ResolveWait)] == ["a"]
    assert finish(second).status == "completed"


@pytest.mark.rule("G-82", "G-103")
def test_age_is_the_order_of_task_ids_whoever_gave_them() -> None:
    ids = iter(["t1", "t9", "t5"])
    h = Harness(plan_of([fork("f"), wait_for("a", "go"), wait_for("b", "go")],
                        [edge("f", "a"), edge("f", "b")]))  # fmt: skip
    h.deps = Deps(h.deps.now, lambda: next(ids), h.deps.roll, h.deps.codec)
    h.start()
    assert [r.node for r in of(h.signal("go"), ResolveWait)] == ["b"]


@pytest.mark.rule("G-82")
def test_waiters_of_other_names_are_left_alone(draw: Draw) -> None:
    h = draw([fork("f"), wait_for("a", "go"), wait_for("b", "stop"), wait("c", duration="1h")],
             [edge("f", n) for n in ("a", "b", "c")])  # fmt: skip
    h.start()
    assert [r.node for r in of(h.signal("stop"), ResolveWait)] == ["b"]
    assert not h.signal("stop").signal_delivered
    assert not h.signal("Go").signal_delivered
    assert (h.status("a"), h.status("c")) == ("waiting", "waiting")


@pytest.mark.rule("G-83")
@pytest.mark.parametrize("payload", [None, Raw(b""), Raw(b"null"), Raw(b" \n null\t")])
@pytest.mark.parametrize("early", [True, False])
def test_no_payload_and_null_become_an_empty_object(
    draw: Draw, payload: Raw | None, early: bool
) -> None:
    h = draw([task("a"), wait_for("w", "go")], chain("a", "w"))
    h.start()
    if early:
        h.apply(SignalReceived("go", "m1", payload))
        h.complete("a")
    else:
        h.complete("a")
        h.apply(SignalReceived("go", "m1", payload))
    assert (h.outputs["w"], h.output()) == (Raw(b"{}"), {"w": {}})


@pytest.mark.rule("G-83")
@pytest.mark.parametrize("payload", [0, False, "", [], {}, "null"])
def test_falsy_payloads_are_values(draw: Draw, payload: object) -> None:
    # scenarios 45, 110
    h = draw([wait_for("w", "go")], [])
    h.start()
    h.signal("go", payload)
    assert h.output() == {"w": payload}


@pytest.mark.rule("G-84", "D-37")
@pytest.mark.parametrize("name", ["", "x" * 257, "a\ud800"])
def test_a_name_that_cannot_be_is_an_invalid_request(draw: Draw, name: str) -> None:
    h = draw([wait_for("w", "go")], [])
    h.start()
    with pytest.raises(InvalidRequest, match="name"):
        h.signal(name)


@pytest.mark.rule("G-84")
@pytest.mark.parametrize("payload", [b"{", b"nope", b"1 2", b"\xff", b"NaN", b" "])
def test_a_payload_that_is_not_json_is_an_invalid_request(draw: Draw, payload: bytes) -> None:
    h = draw([wait_for("w", "go")], [])
    h.start()
    with pytest.raises(InvalidRequest, match="payload of signal go is not valid JSON"):
        h.apply(SignalReceived("go", "m1", Raw(payload)))
    assert h.status("w") == "waiting"


@pytest.mark.rule("G-84", "D-25")
def test_a_run_that_has_ended_refuses_signals_and_says_how_it_ended(draw: Draw) -> None:
    # scenario 12: nothing is recorded that no one can read any more
    for end, status in (("complete", "completed"), ("fail", "failed"), ("cancel", "canceled")):
        h = draw([task("a")], [])
        h.start()
        h.cancel() if end == "cancel" else getattr(h, end)("a")
        with pytest.raises(RunFinished, match=f"run is {status}"):
            h.signal("go")


@pytest.mark.rule("G-84")
def test_a_run_that_has_not_started_refuses_signals(draw: Draw) -> None:
    with pytest.raises(InvalidRequest, match="not started"):
        draw([task("a")], []).signal("go")


@pytest.mark.rule("D-3")
def test_a_second_delivery_of_a_kept_signal_is_ignored(draw: Draw) -> None:
    # scenario 267
    h = draw([task("a"), wait_for("w1", "go"), wait_for("w2", "go")], chain("a", "w1", "w2"))
    h.start()
    h.signal("go", 1, id="hook-7")
    again = h.signal("go", 1, id="hook-7")
    assert (again.actions, "hook-7 is kept already" in str(again.ignored)) == ([], True)
    h.complete("a")
    assert (h.status("w1"), h.status("w2")) == ("completed", "waiting")


@pytest.mark.rule("G-80", "G-83", "D-34")
def test_a_payload_that_stands_apart_is_loaded_when_a_node_takes_the_signal(draw: Draw) -> None:
    h = draw([task("a"), wait_for("w", "go"), task("z", "{{tasks.w.output}}")],
             chain("a", "w", "z"))  # fmt: skip
    h.start()
    h.signal("go", "x" * 100)
    h.put_payloads_apart()
    assert h.run.signals[0].payload is None
    step = h.complete("a")
    assert (h.signal_loads, input_of(step, "z")["input"]) == ([("m1",)], "x" * 100)
    assert h.run.signals == ()


@pytest.mark.rule("G-80", "D-4")
def test_payloads_of_several_signals_are_loaded_one_after_another(draw: Draw) -> None:
    h = draw([task("a"), wait_for("w1", "go"), wait_for("w2", "go")], chain("a", "w1", "w2"))
    h.start()
    h.signal("go", 1)
    h.signal("go", None)
    h.put_payloads_apart()
    h.complete("a")
    assert h.signal_loads == [("m1",), ("m2",)]
    assert (h.outputs["w1"], h.outputs["w2"]) == (Raw(b"1"), Raw(b"{}"))


@pytest.mark.rule("D-9", "D-10", "G-71")
def test_a_payload_that_is_not_there_is_a_store_error_and_consumes_nothing(draw: Draw) -> None:
    h = draw([task("a"), wait_for("w", "go")], chain("a", "w"))
    h.start()
    h.signal("go", 1)
    h.put_payloads_apart()
    payload = h.payloads.pop("m1")
    with pytest.raises(StoreError, match="payload of signal m1 was not found"):
        h.complete("a")
    assert (h.status("a"), [s.id for s in h.run.signals]) == ("pending", ["m1"])
    h.payloads["m1"] = payload
    assert finish(h.complete("a")).status == "completed"


@pytest.mark.rule("D-10")
def test_a_decision_that_waits_for_a_payload_holds_nothing_meanwhile() -> None:
    plan = plan_of([task("a"), wait_for("w0", "go"), wait_for("w", "go")], chain("a", "w0", "w"))
    h = Harness(plan, live=True)
    h.start()
    h.signal("go", 1)
    h.put_payloads_apart()
    h.signal("go", 2)  # this one is in memory
    before = shown(h.run)
    decision = h.machine.apply(NodeCompleted("t001", "a", 0, text({"wrong": True})))
    assert next(decision) == Load(signals=("m1",))
    assert shown(h.run) == before
    decision.close()
    h.complete("a")
    assert (h.outputs["w0"], h.outputs["w"]) == (Raw(b"1"), Raw(b"2"))


@pytest.mark.rule("G-87", "G-29")
def test_a_node_that_gave_up_takes_no_later_signal(draw: Draw) -> None:
    # scenarios 44, 48: the one that waits now gets it
    h = draw(
        [fork("f"), wait_for("a", "go", timeout="1m"), wait_for("b", "go")],
        [edge("f", "a"), edge("f", "b")],
    )
    h.start()
    h.fire("a")
    assert h.nodes["a"].awaited_signal is None
    assert [r.node for r in of(h.signal("go"), ResolveWait)] == ["b"]


@pytest.mark.rule("G-96", "D-5")
def test_a_signal_for_a_node_that_left_the_definition_fails_it_by_name() -> None:
    h = Harness(plan_of([wait_for("w", "go"), task("b")], chain("w", "b")))
    h.start()
    h.plan = plan_of([task("b")], [], version="v2")
    end = finish(h.signal("go"))
    assert "node w is not in version v2" in end.failure.message
