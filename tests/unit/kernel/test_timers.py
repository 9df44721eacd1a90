"""Timers: each counts for the wait it was armed for, when it is due, once."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import ResolveWait
from perdure.kernel.events import DeadlineReached, TimerFired
from perdure.model.durations import SECOND
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import (
    chain,
    cond,
    edge,
    fork,
    otherwise,
    sw,
    task,
    wait,
    wait_for,
)
from tests.unit.kernel.harness import (
    NEW_YEAR,
    Harness,
    dispatched,
    failure_of,
    finish,
    kinds,
    of,
    plan_of,
)

MINUTE = 60 * SECOND
DUE = NEW_YEAR + MINUTE


def waiting(draw: Draw) -> Harness:
    h = draw([wait("w", duration="1m"), task("z")], chain("w", "z"))
    h.start()
    return h


def ignored(h: Harness, event: TimerFired) -> str:
    transition = h.apply(event)  # the harness sees to it that nothing changed
    assert transition.ignored is not None
    return transition.ignored


@pytest.mark.rule("G-14", "G-87")
def test_a_timer_names_its_task_node_and_time_and_no_attempt(draw: Draw) -> None:
    h = waiting(draw)
    h.now = DUE
    step = h.apply(TimerFired("t001", "w", DUE))
    assert kinds(step) == ["ResolveWait", "CreateTask", "DispatchTask"]


@pytest.mark.rule("G-86", "D-13")
def test_a_timer_for_anything_else_is_ignored_with_the_reason(draw: Draw) -> None:
    # scenario 27
    h = waiting(draw)
    h.now = DUE
    assert "nowhere was not reached" in ignored(h, TimerFired("t001", "nowhere", DUE))
    assert "z was not reached" in ignored(h, TimerFired("t001", "z", DUE))
    assert "another task" in ignored(h, TimerFired("t999", "w", DUE))
    assert "another due time" in ignored(h, TimerFired("t001", "w", DUE - 1))
    h.fire("w")
    assert "w is completed" in ignored(h, TimerFired("t001", "w", DUE))
    assert "z is pending" in ignored(h, TimerFired("t002", "z", DUE))
    h.complete("z")
    assert "run is completed" in ignored(h, TimerFired("t001", "w", DUE))


@pytest.mark.rule("D-13")
def test_an_early_timer_is_ignored_and_counts_when_it_comes_again(draw: Draw) -> None:
    # scenarios 68, 69: not a microsecond early
    h = waiting(draw)
    h.now = DUE - 1
    assert "1 µs early" in ignored(h, TimerFired("t001", "w", DUE))
    h.now = DUE
    assert dispatched(h.apply(TimerFired("t001", "w", DUE))) == ["z"]


@pytest.mark.rule("G-86")
def test_a_timer_that_fires_twice_counts_once(draw: Draw) -> None:
    h = waiting(draw)
    h.fire("w")
    assert ignored(h, TimerFired("t001", "w", DUE))


@pytest.mark.rule("G-86", "G-84")
def test_a_timeout_that_lost_to_its_signal_is_ignored(draw: Draw) -> None:
    # scenarios 27, 40
    h = draw([wait_for("w", "go", timeout="1m"), task("z")], chain("w", "z"))
    h.start()
    h.signal("go")
    h.now = DUE
    assert ignored(h, TimerFired("t001", "w", DUE))
    assert finish(h.complete("z")).status == "completed"


@pytest.mark.rule("G-86")
def test_a_wait_without_a_timeout_has_no_timer(draw: Draw) -> None:
    h = draw([wait_for("w", "go")], [])
    h.start()
    assert ignored(h, TimerFired("t001", "w", NEW_YEAR))


@pytest.mark.rule("G-87", "G-29", "G-44")
def test_a_wait_for_a_signal_that_never_came_fails_and_names_it(draw: Draw) -> None:
    # scenario 56: a timeout is a failure like others
    h = draw(
        [fork("f"), wait_for("w", "paid", timeout="1m"), task("z"), task("b")],
        [*chain("f", "w", "z"), edge("f", "b")],
    )
    h.start()
    step = h.fire("w")
    (resolved,) = of(step, ResolveWait)
    assert (resolved.status, resolved.output) == ("failed", None)
    failure = failure_of(step, "w")
    assert (failure.kind, failure.message) == (
        "workflow.timeout", 'timed out waiting for signal "paid"',
    )  # fmt: skip
    assert (h.status("z"), h.run.status) == ("unreached", "running")
    end = finish(h.complete("b")).failure
    assert (end.kind, end.message) == (
        "workflow.timeout", 'node w failed: timed out waiting for signal "paid"',
    )  # fmt: skip


@pytest.mark.rule("G-87")
def test_a_wait_that_may_go_on_completes_when_its_signal_did_not_come(draw: Draw) -> None:
    h = draw(
        [wait_for("w", "paid", timeout="1m", on_timeout="continue"), sw("s"), task("paid"),
         task("remind")],
        [*chain("w", "s"), cond("s", "remind", "has(tasks.w.output.timed_out)"),
         otherwise("s", "paid")],
    )  # fmt: skip
    h.start()
    step = h.fire("w")
    (resolved,) = of(step, ResolveWait)
    assert (resolved.status, bytes(resolved.output or b"")) == ("completed", b'{"timed_out":true}')
    assert dispatched(step) == ["remind"]
    assert finish(h.complete("remind")).status == "completed"


@pytest.mark.rule("G-87")
def test_one_that_may_go_on_and_got_its_signal_gives_what_was_sent(draw: Draw) -> None:
    h = draw(
        [wait_for("w", "paid", timeout="1m", on_timeout="continue"), sw("s"), task("paid"),
         task("remind")],
        [*chain("w", "s"), cond("s", "remind", "has(tasks.w.output.timed_out)"),
         otherwise("s", "paid")],
    )  # fmt: skip
    h.start()
    assert dispatched(h.signal("paid", {"by": "ann"})) == ["paid"]


def test_whether_a_wait_goes_on_is_for_the_document_to_say(draw: Draw) -> None:
    h = draw([{"id": "w", "type": "WAIT_FOR_SIGNAL", "spec": "{{input}}"}], [])
    step = h.start({"signal": "paid", "timeout": "1m", "on_timeout": "continue"})
    assert "on_timeout must stand in the document itself" in failure_of(step, "w").message
    h = draw([{"id": "w", "type": "WAIT_FOR_SIGNAL", "spec": "{{input}}"}], [])
    step = h.start({"signal": "paid", "timeout": "1m", "on_timeout": "fail"})
    assert h.status("w") == "waiting"


@pytest.mark.rule("G-87")
def test_a_time_that_passed_while_nobody_looked_counts_when_it_is_noticed(draw: Draw) -> None:
    h = waiting(draw)
    h.advance(86_400)
    assert dispatched(h.fire("w")) == ["z"]


def test_two_timers_due_at_the_same_instant_each_do_their_part(draw: Draw) -> None:
    # scenario 65
    h = draw([fork("f"), wait("a", duration="1m"), wait("b", duration="60s")],
             [edge("f", "a"), edge("f", "b")])  # fmt: skip
    h.start()
    assert h.nodes["a"].wake_at == h.nodes["b"].wake_at
    h.fire("b")
    assert finish(h.fire("a")).status == "completed"


def test_time_never_goes_back_when_a_clock_behind_takes_over(draw: Draw) -> None:
    h = draw([wait("w", duration="1m"), task("z")], chain("w", "z"))
    h.start()
    h.fire("w")
    h.now = NEW_YEAR
    assert finish(h.complete("z")).status == "completed"
    times = [row.at for row in h.recorded()]
    assert times == [NEW_YEAR, DUE, DUE]


@pytest.mark.rule("D-1")
def test_the_deadline_ends_waiting_nodes_too(draw: Draw) -> None:
    h = draw(
        [fork("f"), wait("w", duration="1h"), wait_for("s", "go"), task("a"),
         task("b", retry={"attempts": 3})],
        [edge("f", n) for n in ("w", "s", "a", "b")],
    )  # fmt: skip
    h.start(deadline=DUE)
    h.fail("b")
    h.advance(60)
    step = h.apply(DeadlineReached())
    assert kinds(step) == ["ResolveWait", "ResolveWait", "FailTask", "FailTask", "FinishRun"]
    assert {failure_of(step, n).kind for n in ("w", "s", "a", "b")} == {"workflow.timeout"}
    end = finish(step)
    assert (end.status, end.failure.kind, h.run.active) == ("failed", "workflow.timeout", 0)


def test_a_timer_for_a_node_that_left_the_definition_fails_it_by_name() -> None:
    h = Harness(plan_of([wait("w", duration="1m"), task("b")], chain("w", "b")))
    h.start()
    h.plan = plan_of([task("b")], [], version="v2")
    assert "node w is not in version v2" in finish(h.fire("w")).failure.message


def test_no_timer_outlives_the_last_attempt(draw: Draw) -> None:
    # scenarios 58, 63: nothing is left to fire once the attempts are used up
    h = draw([task("a", retry={"attempts": 2})], [])
    h.start()
    h.fail("a")
    assert h.nodes["a"].not_before == NEW_YEAR + SECOND
    h.fail("a")
    assert (h.nodes["a"].not_before, h.nodes["a"].wake_at, h.run.status) == (0, None, "failed")
