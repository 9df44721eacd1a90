"""CHILD nodes rehearsed: what they ask for is answered for, or runs against the same mocks."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import Context, step, workflow
from perdure.model.errors import InvalidRequest
from perdure.testing import play, rehearse
from tests.unit.testing.documents import chain, http, task


def child(id: str, workflow: str = "payment", **rest: Any) -> dict[str, Any]:
    spec = {"workflow": workflow, "input": {"total": 7}, **rest.pop("spec", {})}
    return {"id": id, "type": "CHILD", "spec": spec, **rest}


def ship(input: Any) -> dict[str, Any]:
    return {"id": "ship", "type": "TASK", "spec": {"step": "ship", "input": input}}


SHIP = ship({"paid": "{{tasks.pay.output.paid}}"})
ORDER = chain(child("pay"), SHIP)


@step
async def charge(total: int) -> int:
    raise AssertionError("never called")


@workflow(max_duration="1h", name="payment")
async def payment(ctx: Context, order: dict[str, int]) -> dict[str, int]:
    await ctx.sleep(60)
    return {"paid": await charge(order["total"])}


@pytest.mark.parametrize("key", ["pay", "payment"])
def test_a_mock_answers_for_the_run_by_node_or_by_name(key: str) -> None:
    seen: list[Any] = []

    paid = {"result": {"paid": 7}, "delay": "5s"}
    mocks = {"steps": {key: paid, "ship": seen.append}}
    rehearsal = rehearse(ORDER, mocks)
    rehearsal.check(status="completed", route=["pay", "ship"], duration="5s", attempts={"pay": 1})
    assert seen == [{"paid": 7}]
    assert rehearsal.nodes["pay"].output == {"paid": 7}


def test_a_function_is_called_with_what_the_run_was_given() -> None:
    mocks = {"steps": {"pay": lambda order: {"paid": order["total"] + 1}, "ship": 1}}
    assert rehearse(ORDER, mocks).nodes["pay"].output == {"paid": 8}


def test_a_failing_run_is_asked_for_again_and_each_attempt_has_its_answer() -> None:
    tries = chain(child("pay", retry={"attempts": 3, "initial": 10}), SHIP)
    replies = [{"fail": "no money", "kind": "poor"}, {"paid": 7}]
    rehearsal = rehearse(tries, {"steps": {"pay": replies, "ship": 1}})
    rehearsal.check(status="completed", attempts={"pay": 2}, duration=10)
    once = rehearse(ORDER, {"steps": {"pay": {"fail": "no", "kind": "poor", "permanent": True}}})
    once.check(failure={"kind": "poor", "message": "node pay failed: no"}, not_ran=["ship"])


def test_a_run_that_takes_too_long_is_let_go() -> None:
    slow = chain(child("pay", timeout="1m"), SHIP)
    rehearsal = rehearse(slow, {"steps": {"pay": {"result": 1, "delay": "5m"}}})
    rehearsal.check(failure={"kind": "workflow.timeout"}, duration="1m")


def test_a_workflow_beside_it_runs_with_its_steps_answered() -> None:
    mocks = {"steps": {"charge": 7, "ship": "T1"}}
    rehearsal = rehearse(ORDER, mocks, beside=[payment])
    rehearsal.check(status="completed", duration="1m")
    assert rehearsal.nodes["pay"].output == {"paid": 7}


def test_a_graph_beside_it_runs_and_its_nodes_have_answers_of_their_own() -> None:
    inner = chain(task("ship"), name="payment")
    mocks = {"steps": {"payment.ship": {"paid": 1}, "ship": "T1"}}
    top = chain(child("pay"), ship({"x": "{{tasks.pay.output.ship.paid}}"}))
    rehearsal = rehearse(top, mocks, beside=[inner])
    assert rehearsal.output == {"ship": "T1"}
    assert rehearsal.nodes["pay"].output == {"ship": {"paid": 1}}


def test_a_mock_goes_before_what_is_beside() -> None:
    mocks = {"steps": {"pay": {"paid": 2}, "ship": 1}}
    assert rehearse(ORDER, mocks, beside=[payment]).seconds == 0


def test_one_without_a_mock_is_told_with_all_that_lack_one() -> None:
    with pytest.raises(InvalidRequest, match=r"node pay \(workflow payment\).*mock: .*pay, ship"):
        rehearse(ORDER)
    with pytest.raises(InvalidRequest, match="no such node or step; did you mean"):
        rehearse(ORDER, {"steps": {"paymen": 1}})
    assert rehearse(ORDER, default={"paid": 1}).status == "completed"


def test_a_name_that_only_the_run_tells_is_answered_for_too() -> None:
    any_name = chain(child("pay", "{{input}}"))
    rehearsal = rehearse(any_name, {"steps": {"pay": 3}}, input="whatever")
    assert rehearsal.output == {"pay": 3}


def test_a_played_workflow_waits_for_the_runs_beside_it() -> None:
    @workflow(max_duration="1h")
    async def order(ctx: Context) -> int:
        paid = await ctx.child(payment, {"total": 3})
        return paid["paid"] + 1

    @workflow(max_duration="1h")
    async def top(ctx: Context) -> int:
        return await ctx.child(order)

    played = play(top, steps={charge: lambda total: total}, beside=[order, payment])
    assert (played.result(), played.seconds) == (4, 60.0)


def test_a_child_that_nobody_runs_is_told_of() -> None:
    @workflow(max_duration=None)
    async def order(ctx: Context) -> Any:
        return await ctx.child(payment, {"total": 3})

    played = play(order)
    assert played.status == "waiting"
    assert "waits for run payment/order/rehearsal/payment" in played.reason


def test_a_played_workflow_calls_graphs_whose_nodes_are_answered_for() -> None:
    retry = {"attempts": 2, "initial": 0}
    nodes = [
        http("ask", retry=retry),
        {"id": "charge", "type": "TASK", "spec": {"step": "charge", "input": {"total": 3}}},
    ]
    paying = chain(*nodes, name="paying", output="{{tasks.charge.output}}")

    @workflow(max_duration="1h")
    async def order(ctx: Context) -> Any:
        return await ctx.child(paying, {"sum": 1})

    answers = {
        "paying.ask": [{"status": 503}, {"status": 200}],
        charge: lambda given: given["total"],
    }
    played = play(order, steps=answers, beside=[paying])
    assert played.result() == 3

    async def asked(spec: Any) -> dict[str, Any]:
        return {"at": spec["url"]}

    async def charged(given: Any) -> int:
        return len(given)

    assert play(order, steps={"paying.ask": asked, charge: charged}, beside=[paying]).result() == 1
    assert [call.step for call in played.calls] == ["paying.ask", "paying.ask", "charge"]
    with pytest.raises(InvalidRequest, match="step charge is called"):
        play(order, steps={"paying.ask": {"status": 200}}, beside=[paying])
