"""Rehearsals: documents by the real engine against mocks, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure.flow.step import step
from perdure.graph.definition import Graph
from perdure.model.errors import Failure, GraphError, InvalidRequest
from perdure.model.policy import Retry
from perdure.testing import rehearse
from tests.unit.testing.documents import LARGE, ORDER, SMALL, chain, http, task, wait_for


def test_the_route_is_taken_that_the_mocks_lead_to() -> None:
    rehearsal = rehearse(ORDER, SMALL)
    assert rehearsal.status == "completed"
    assert rehearsal.output == {"tracking": "T1"}
    assert rehearsal.route == ("fetch", "route", "ship")
    assert rehearsal.skipped == ("review",)
    assert rehearsal.edges == (("fetch", "route"), ("route", "ship"))
    assert rehearsal.nodes["route"].branches == ("ship",)


def test_days_pass_until_a_signal_comes() -> None:
    signals = [{"at": "2d", "name": "reviewed", "value": {"by": "ann"}}]
    rehearsal = rehearse(ORDER, {**LARGE, "signals": signals})
    assert rehearsal.route == ("fetch", "route", "review", "ship")
    review = rehearsal.nodes["review"]
    assert (review.began, review.ended, review.output) == (0.0, 2 * 86_400.0, {"by": "ann"})
    assert rehearsal.seconds == 2 * 86_400.0


def test_a_wait_times_out_as_in_life() -> None:
    rehearsal = rehearse(ORDER, LARGE)
    assert rehearsal.status == "failed"
    assert rehearsal.failure is not None
    assert rehearsal.failure["kind"] == "workflow.timeout"
    assert rehearsal.seconds == 3 * 86_400.0
    assert rehearsal.nodes["review"].status == "failed"
    assert "ship" not in rehearsal.nodes


def test_ninety_years_pass_at_once() -> None:
    graph = chain({"id": "rest", "type": "WAIT", "spec": {"duration": "32000d"}}, task("a"))
    rehearsal = rehearse(graph, {"steps": {"a": 1}})
    assert (rehearsal.status, rehearsal.seconds) == ("completed", 32_000 * 86_400.0)


def test_a_wait_that_nothing_ends_is_told() -> None:
    rehearsal = rehearse(chain(task("a"), wait_for("ask", "yes")), {"steps": {"a": 1}})
    assert rehearsal.status == "waiting"
    assert rehearsal.reason == "ask waits for signal yes for ever"
    forever = chain({"id": "rest", "type": "WAIT", "spec": {"until": "9999-01-01T00:00:00Z"}})
    assert rehearse(forever).reason == "rest waits for more than a hundred years"


def test_attempts_are_answered_in_turn_and_delayed_by_the_policy() -> None:
    replies = [{"fail": "down"}, {"fail": "down", "retry_after": "25s"}, {"total": 1}]
    rehearsal = rehearse(ORDER, {"steps": {"fetch": replies, "ship": "T"}})
    fetch = rehearsal.nodes["fetch"]
    assert (fetch.status, fetch.attempt, fetch.ended) == ("completed", 3, 35.0)


def test_the_last_answer_is_repeated_and_a_permanent_failure_is_not_tried_again() -> None:
    always = rehearse(ORDER, {"steps": {"fetch": {"fail": "down", "kind": "shop-down"}}})
    assert always.nodes["fetch"].attempt == 3
    once = rehearse(ORDER, {"steps": {"fetch": {"fail": "gone", "permanent": True}}})
    assert once.nodes["fetch"].attempt == 1
    assert always.nodes["fetch"].failure == {"kind": "shop-down", "message": "down"}


def test_a_delay_passes_and_a_timeout_ends_it() -> None:
    graph = chain(task("a", timeout="5s"))
    assert rehearse(graph, {"steps": {"a": {"result": 1, "delay": "3s"}}}).seconds == 3.0
    late = rehearse(graph, {"steps": {"a": {"result": 1, "delay": "30s"}}})
    assert (late.status, late.seconds) == ("failed", 5.0)
    assert late.nodes["a"].failure is not None
    assert late.nodes["a"].failure["message"] == "attempt 1 of node a took longer than 5 s"


def test_requests_are_read_and_answers_are_judged() -> None:
    graph = chain(http("pay", retry={"attempts": 4}), output="{{tasks.pay.output}}")
    busy = {"status": 503, "headers": {"retry-after": "20"}, "body": "later"}
    mocks = {"input": {"sum": 5}, "steps": {"pay": [busy, {"body": {"id": 7}}]}}
    rehearsal = rehearse(graph, mocks)
    assert rehearsal.output == {"status": 200, "headers": {}, "body": {"id": 7}}
    assert rehearsal.seconds == 20.0
    gone = rehearse(graph, {"input": {"sum": 5}, "steps": {"pay": {"status": 404}}})
    assert gone.nodes["pay"].attempt == 1
    assert gone.nodes["pay"].failure is not None
    assert gone.nodes["pay"].failure["kind"] == "http-status"
    assert gone.nodes["pay"].failure["message"].endswith("unexpected status 404 Not Found")


def test_a_slow_request_times_out_by_its_own_time() -> None:
    rehearsal = rehearse(chain(http("pay")), {"input": {"sum": 1}}, default={"delay": "1h"})
    slow = rehearse(
        chain(http("pay")), {"input": {"sum": 1}, "steps": {"pay": {"status": 200, "delay": "1h"}}}
    )
    assert slow.nodes["pay"].failure is not None
    assert slow.nodes["pay"].failure["kind"] == "http-timeout"
    assert slow.seconds == rehearsal.seconds == 30.0


def test_a_request_that_could_not_be_sent_fails_as_in_life() -> None:
    graph = chain({"id": "get", "type": "HTTP", "spec": {"url": "{{input.url}}"}})
    rehearsal = rehearse(graph, {"input": {"url": "no url"}, "steps": {"get": {"status": 200}}})
    assert rehearsal.nodes["get"].failure is not None
    assert rehearsal.nodes["get"].failure["kind"] == "http-url"


def test_a_step_is_mocked_by_its_name_for_all_its_nodes() -> None:
    graph = chain(task("one", "work"), task("two", "work"), output="{{tasks.two.output}}")
    assert rehearse(graph, {"steps": {"work": 1, "two": 2}}).output == 2
    assert rehearse(graph, {"steps": {"work": 1}}).output == 1


def test_a_step_named_by_a_template_is_mocked_by_its_name() -> None:
    graph = chain({"id": "a", "type": "TASK", "spec": {"step": "{{input.step}}"}})
    rehearsal = rehearse(graph, {"input": {"step": "work"}, "steps": {"work": 5}})
    assert rehearsal.output == {"a": 5}
    unknown = rehearse(graph, {"input": {"step": "other"}, "steps": {"work": 5}})
    assert unknown.status == "stalled"
    assert "other" in unknown.reason


def test_a_node_that_is_reached_without_a_mock_is_refused_with_all_that_lack_one() -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"^node fetch \(step load\) was reached and has no mock.* are: fetch, ship$",
    ):
        rehearse(ORDER)
    assert rehearse(ORDER, {"steps": {"ship": 1}, "default": {"total": 0}}).status == "completed"
    assert rehearse(ORDER, default={"total": 0}).output == {"tracking": {"total": 0}}


def test_a_run_is_canceled_when_its_time_comes() -> None:
    rehearsal = rehearse(ORDER, {**LARGE, "cancel": {"at": "1h", "reason": "no more"}})
    assert (rehearsal.status, rehearsal.seconds) == ("canceled", 3600.0)
    assert rehearsal.failure is not None
    assert rehearsal.failure["message"] == "no more"


def test_the_runs_own_deadline_counts() -> None:
    graph = chain(wait_for("ask", "yes"), max_duration="1d")
    rehearsal = rehearse(graph)
    assert (rehearsal.status, rehearsal.seconds) == ("failed", 86_400.0)


def test_time_begins_when_the_mocks_say() -> None:
    graph = chain(
        {"id": "open", "type": "WAIT", "spec": {"until": "2030-01-01T09:00:00+01:00"}},
        output="{{system.now}}",
    )
    rehearsal = rehearse(graph, {"now": "2030-01-01T07:30:00Z"})
    assert rehearsal.seconds == 1800.0


def test_signals_that_changed_nothing_are_noted() -> None:
    signals = [{"name": "other"}, {"name": "reviewed", "at": "1h"}, {"name": "late", "at": "9d"}]
    rehearsal = rehearse(ORDER, {**LARGE, "signals": signals})
    assert rehearsal.status == "completed"
    assert rehearsal.notes == (
        "no node took signal other",
        "signal late was not sent: the run had ended before",
    )


def test_secrets_are_used_and_not_recorded() -> None:
    spec = {"step": "work", "input": {"key": "{{secrets.api_key}}"}}
    graph = chain({"id": "a", "type": "TASK", "spec": spec})
    seen: list[Any] = []

    def work(input: Any) -> str:
        seen.append(input)
        raise Failure(f"refused {input['key']}")

    rehearsal = rehearse(graph, {"secrets": {"api_key": "s3cr3t-value"}, "steps": {"a": work}})
    assert seen == [{"key": "s3cr3t-value"}]
    assert "s3cr3t-value" not in repr(rehearsal.history)
    assert rehearsal.nodes["a"].failure is not None
    assert rehearsal.nodes["a"].failure["message"] == "refused [secret api_key]"


class SoldOut(Failure, kind="sold-out", permanent=True):
    """Nothing is left."""


def test_from_python_exceptions_are_raised_and_functions_called() -> None:
    graph = chain(task("a", retry={"attempts": 3}), output="{{tasks.a.output}}")
    assert rehearse(graph, {"input": 20, "steps": {"a": lambda n: n + 1}}).output == 21

    async def later(n: int) -> int:
        await asyncio.sleep(5)
        return n + 1

    slowly = rehearse(graph, {"input": 20, "steps": {"a": later}})
    assert (slowly.output, slowly.seconds) == (21, 5.0)
    failed = rehearse(graph, {"steps": {"a": [ValueError("odd"), SoldOut("none left")]}})
    assert failed.nodes["a"].failure is not None
    assert failed.nodes["a"].failure["kind"] == "sold-out"
    assert failed.nodes["a"].attempt == 2


@step(retry=Retry(2, initial=60, max_delay=60), timeout="10s")
def ship(order: str) -> str:
    raise AssertionError("a rehearsal calls no real step")


def test_real_steps_lend_their_policy_timeout_and_parameters() -> None:
    node = {"id": "a", "type": "TASK", "spec": {"step": "ship", "input": {"order": "{{input.o}}"}}}
    mocks = {"input": {"o": "o-1"}, "steps": {"ship": [{"delay": "1m"}, "T"]}}
    rehearsal = rehearse(chain(node), mocks, steps=[ship])
    assert (rehearsal.nodes["a"].attempt, rehearsal.seconds) == (2, 70.0)
    wrong = rehearse(chain(node), {**mocks, "input": {"o": 7}}, steps=[ship])
    assert wrong.status == "failed"
    assert wrong.nodes["a"].failure is not None
    assert "order" in wrong.nodes["a"].failure["message"]


def test_the_same_rehearsal_is_the_same_again_jitter_and_all() -> None:
    graph = chain(task("a", retry={"attempts": 5, "initial": "10s", "jitter": 0.5}))
    mocks = {"steps": {"a": [{"fail": "x"}] * 4 + [1]}}
    first, second = rehearse(graph, mocks), rehearse(graph, mocks)
    assert first.seconds == second.seconds
    assert first.seconds != 150.0


def test_large_outputs_are_whole() -> None:
    graph = chain(task("a"), output="{{tasks.a.output}}")
    rehearsal = rehearse(graph, {"steps": {"a": "x" * 10_000}})
    assert rehearsal.output == rehearsal.nodes["a"].output == "x" * 10_000


def test_a_rehearsal_may_be_called_from_a_running_loop() -> None:
    async def main() -> str:
        return rehearse(ORDER, SMALL).status

    assert asyncio.run(main()) == "completed"


def test_documents_come_as_mappings_and_bad_ones_are_refused() -> None:
    document = {"name": "a", "nodes": [task("one")], "edges": []}
    assert rehearse(document, {"steps": {"one": 1}}).output == {"one": 1}
    with pytest.raises(GraphError):
        rehearse({**document, "nodes": []})


def test_a_start_node_and_a_config_come_from_the_mocks() -> None:
    graph = chain(task("a"), task("b"), output="{{config.k}}")
    rehearsal = rehearse(graph, {"start_node": "b", "config": {"k": 5}, "default": 1})
    assert (rehearsal.route, rehearsal.output) == (("b",), 5)


def test_endless_attempts_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.testing.stand_ins.MOST_ATTEMPTS", 50)
    graph = chain(task("a", retry={"attempts": 1_000_000}))
    with pytest.raises(InvalidRequest, match="more than 50 attempts"):
        rehearse(graph, {"steps": {"a": {"fail": "x"}}})


def test_how_it_went_can_be_drawn() -> None:
    assert "class fetch,route,ship is_completed" in rehearse(ORDER, SMALL).mermaid()
    assert "fetch, task, completed" in rehearse(ORDER, SMALL).svg()
    assert isinstance(rehearse(ORDER, SMALL).graph, Graph)
