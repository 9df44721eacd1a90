"""Attempts: counted from 0, the same task, as often and as late as the policy says."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import FailTask, RetryTask, Transition
from perdure.model.durations import MAX_DURATION, SECOND
from perdure.model.failure import FailureRecord
from perdure.model.policy import RetryPolicy
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, fork, http, task
from tests.unit.kernel.harness import Harness, dispatched, failure_of, finish, kinds, of, plan_of


def retried(draw: Draw, **policy: object) -> Harness:
    h = draw([task("a", retry=policy), task("b")], chain("a", "b"))
    h.start()
    return h


def delay(h: Harness, transition: Transition) -> float:
    """How many seconds after now the next attempt may begin."""
    (order,) = of(transition, RetryTask)
    return (order.not_before - h.now) / SECOND


@pytest.mark.rule("G-39", "G-28", "G-27", "D-2")
def test_three_attempts_are_numbers_0_1_and_2(draw: Draw) -> None:
    h = retried(draw, attempts=3)
    first, second = h.fail("a"), h.fail("a")
    assert [of(first, RetryTask)[0].attempt, of(second, RetryTask)[0].attempt] == [0, 1]
    assert h.nodes["a"].attempt == 2
    last = h.fail("a")
    assert kinds(last) == ["FailTask", "FinishRun"]
    assert of(last, FailTask)[0].attempt == 2
    assert h.status("b") == "unreached"


@pytest.mark.rule("G-28", "G-40", "G-43")
def test_a_retry_is_one_action_on_the_same_task(draw: Draw) -> None:
    # scenario 59
    h = retried(draw, attempts=2)
    before = h.nodes["a"]
    step = h.fail("a", "no luck")
    assert kinds(step) == ["RetryTask"]  # no new task, no dispatch, nothing resolved again
    (order,) = of(step, RetryTask)
    assert (order.task, order.failure.message) == (before.task, "no luck")
    assert (h.nodes["a"].task, h.nodes["a"].status, h.nodes["a"].attempt) == (
        before.task, "pending", 1,
    )  # fmt: skip
    assert h.run.active == 1


@pytest.mark.rule("G-43")
def test_a_retry_sees_the_input_of_the_first_attempt(draw: Draw) -> None:
    # scenarios 255, 256: never resolved again, so neither time nor data can change it
    h = draw([task("a", {"at": "{{string(system.now)}}"}, retry={"attempts": 2})], [])
    h.start()
    h.advance(60)
    assert all(getattr(action, "input", None) is None for action in h.fail("a").actions)


@pytest.mark.rule("G-41")
def test_the_delay_is_asked_for_by_the_number_of_the_retry_and_counts_from_now(draw: Draw) -> None:
    h = retried(draw, attempts=6, initial=2, factor=3, max_delay=30)
    h.advance(5)
    assert [delay(h, h.fail("a")) for _ in range(5)] == [2, 6, 18, 30, 30]


@pytest.mark.rule("D-35")
def test_the_defaults_are_one_second_doubling_up_to_thirty(draw: Draw) -> None:
    h = retried(draw, attempts=8)
    assert [delay(h, h.fail("a")) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.rule("D-35")
def test_without_a_policy_there_is_one_attempt(draw: Draw) -> None:
    h = draw([http("a")], [])
    h.start()
    assert kinds(h.fail("a")) == ["FailTask", "FinishRun"]


@pytest.mark.rule("D-35")
def test_a_nodes_policy_overrides_its_steps(draw: Draw) -> None:
    policies = {"work": RetryPolicy(attempts=2)}
    h = draw([task("a"), task("b", retry={"attempts": 1})], chain("a", "b"), policies=policies)
    h.start()
    assert kinds(h.fail("a")) == ["RetryTask"]
    h.complete("a")
    assert kinds(h.fail("b")) == ["FailTask", "FinishRun"]


@pytest.mark.rule("D-16")
def test_a_permanent_failure_ends_the_attempts(draw: Draw) -> None:
    h = retried(draw, attempts=5)
    step = h.fail("a", FailureRecord("CardDeclined", "no", permanent=True, details={"code": 5}))
    assert kinds(step) == ["FailTask", "FinishRun"]
    end = finish(step).failure
    assert (end.kind, end.permanent, end.details["details"]) == ("CardDeclined", True, {"code": 5})


@pytest.mark.rule("D-35")
def test_kinds_of_failure_are_retried_as_the_document_says(draw: Draw) -> None:
    only = retried(draw, attempts=3, retry_on=["busy"])
    assert kinds(only.fail("a", FailureRecord("busy", "")))[0] == "RetryTask"
    assert kinds(only.fail("a", FailureRecord("other", "")))[0] == "FailTask"
    but = retried(draw, attempts=3, never_on=["fatal"])
    assert kinds(but.fail("a", FailureRecord("other", "")))[0] == "RetryTask"
    assert kinds(but.fail("a", FailureRecord("fatal", "")))[0] == "FailTask"


@pytest.mark.rule("D-35")
def test_a_failure_may_say_when_to_try_again_within_the_policys_cap(draw: Draw) -> None:
    h = retried(draw, attempts=5, initial=1, max_delay=10)
    assert delay(h, h.fail("a", FailureRecord("busy", "", retry_after=7 * SECOND))) == 7
    assert delay(h, h.fail("a", FailureRecord("busy", "", retry_after=0))) == 0
    assert delay(h, h.fail("a", FailureRecord("busy", "", retry_after=3600 * SECOND))) == 10
    assert delay(h, h.fail("a", FailureRecord("busy", "", retry_after=-SECOND))) == 0


@pytest.mark.rule("D-35")
def test_no_attempt_begins_later_than_max_elapsed_after_the_first(draw: Draw) -> None:
    h = retried(draw, attempts=99, initial=10, factor=1, max_elapsed=25)
    assert delay(h, h.fail("a")) == 10
    h.advance(15)
    assert delay(h, h.fail("a")) == 10
    h.advance(1)
    assert kinds(h.fail("a")) == ["FailTask", "FinishRun"]


@pytest.mark.rule("D-35")
def test_elapsed_time_counts_from_when_the_node_was_reached(draw: Draw) -> None:
    policy = {"attempts": 9, "initial": 1, "max_elapsed": 10}
    h = draw([task("a"), task("b", retry=policy)], chain("a", "b"))
    h.start()
    h.advance(3600)
    h.complete("a")
    h.advance(5)
    assert delay(h, h.fail("b")) == 1


@pytest.mark.rule("D-35")
def test_jitter_spreads_the_delay_by_the_injected_roll_and_is_recorded(draw: Draw) -> None:
    h = retried(draw, attempts=9, initial=10, factor=1, jitter=0.2)
    h.roll = 0.0
    assert delay(h, h.fail("a")) == pytest.approx(8)
    h.roll = 0.5
    assert delay(h, h.fail("a")) == pytest.approx(10)
    h.roll = 0.999999
    assert delay(h, h.fail("a")) == pytest.approx(12, rel=1e-4)


@pytest.mark.rule("G-41", "D-35")
def test_a_delay_never_overflows_what_stores_can_hold(draw: Draw) -> None:
    h = retried(draw, attempts=3000, initial="300w", factor=1e300, max_delay=0)
    for _ in range(5):
        (order,) = of(h.fail("a"), RetryTask)
        assert order.not_before <= h.now + MAX_DURATION < 2**63


@pytest.mark.rule("G-42", "G-96")
def test_a_node_that_left_the_definition_is_not_retried(draw: Draw) -> None:
    h = Harness(plan_of([task("a", retry={"attempts": 3}), task("b")], chain("a", "b")))
    h.start()
    h.plan = plan_of([task("b")], [])
    assert kinds(h.fail("a")) == ["FailTask", "FinishRun"]


@pytest.mark.rule("G-44", "G-46")
def test_while_one_branch_backs_off_the_other_goes_on(draw: Draw) -> None:
    h = draw(
        [fork("f"), task("a", retry={"attempts": 2}), task("b"), task("c")],
        [*chain("f", "a"), *chain("f", "b", "c")],
    )
    h.start()
    h.fail("a")
    assert dispatched(h.complete("b")) == ["c"]
    h.complete("c")
    assert h.run.status == "running"
    failed = h.fail("a", "again")
    assert failure_of(failed, "a").message == "again"
    assert finish(failed).status == "failed"
