"""Declaring a saga: what is built, in which order, and everything that is refused, at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure import DefinitionError, Engine, Retry, Saga, SagaContext, step, workflow
from perdure.flow.registry import Registry
from perdure.kernel.plan import GraphPlan


class Order(msgspec.Struct):
    id: str
    total: int = 1


@step(retry=4, timeout="5s")
async def charge(order: Order) -> str:
    return f"ch_{order.id}"


@step
async def two(order: Order, amount: int) -> None: ...


def work(ctx: SagaContext[Order]) -> None: ...


async def undo(ctx: SagaContext[Order]) -> None: ...


def saga(**options: Any) -> Saga[Order]:
    return Saga("order", Order, **options)


def problems(made: Saga[Any]) -> list[str]:
    with pytest.raises(DefinitionError) as raised:
        Registry.of([made])
    return [str(problem).removeprefix(f"saga {made.name}: ") for problem in raised.value.problems]


def after(plan: GraphPlan) -> dict[str, list[str]]:
    return {node: [edge.source for edge in plan.shape.incoming[node]] for node in plan.nodes}


@pytest.mark.rule("S-1")
def test_a_step_runs_after_the_one_declared_before_it() -> None:
    made = saga().step("a", work).step("b", work).step("c", work)
    assert after(made.plan) == {"a": [], "b": ["a"], "c": ["b"]}


@pytest.mark.rule("S-2", "D-21")
def test_depends_on_makes_a_graph_of_it_and_an_empty_one_another_root() -> None:
    made = (
        saga()
        .step("a", work)
        .step("b", work, depends_on=["a"])
        .step("c", work, depends_on=["a"])
        .step("d", work, depends_on=["b", "c", "late"])
        .step("late", work, depends_on=[])
    )
    assert after(made.plan) == {
        "a": [], "b": ["a"], "c": ["a"], "d": ["b", "c", "late"], "late": [],
    }  # fmt: skip
    assert made.plan.all_entries


@pytest.mark.rule("SX-8")
def test_a_name_twice_in_depends_on_counts_once() -> None:
    made = saga().step("a", work).step("b", work, depends_on=["a", "a", "a"])
    assert after(made.plan) == {"a": [], "b": ["a"]}


@pytest.mark.rule("S-4")
def test_each_method_gives_a_new_saga_and_leaves_the_old_one_as_it_was() -> None:
    base = saga().step("a", work)
    longer, other = base.step("b", work), base.started_by(Order)
    assert base.planned == ("a",)
    assert longer.planned == ("a", "b")
    assert (base.triggers, other.triggers) == ((), (Order,))
    assert len({base.hash, other.hash, longer.hash}) == 3
    assert other.started_by(Order).hash == other.hash
    assert base.plan is base.plan  # worked out once


@pytest.mark.rule("S-3", "D-24")
def test_everything_that_is_wrong_is_told_at_once_before_anything_runs() -> None:
    wrong: Any = saga(on_failure="stop", undo_on=["never"], max_duration=0)
    made = (
        wrong.step("a", None)
        .step("a", work, depends_on=["gone", "a"])
        .step("9", work, undo_retry=3)
        .step("c", work, retry=0, timeout=-1, depends_on="a")
    )
    found = problems(made)
    for said in (
        "max_duration 0: use more than 0",
        "on_failure 'stop': use one of drain, continue, cancel",
        "undo_on 'never': use some of cancel, failure, timeout",
        "step a: it has no function",
        "step a: declared 2 times",
        "step a: depends_on names 'gone', and there is none",
        "step a: it would wait for itself",
        "step 9: a step's name is 1-64 letters",
        "step 9: undo_retry without undo=",
        "step c: retry attempts 0: use a whole number from 1",
        "step c: timeout -1 is negative",
        "step c: depends_on='a': give a list of names of steps",
    ):
        assert any(one.startswith(said) for one in found), (said, found)
    assert len(found) == 12
    with pytest.raises(DefinitionError):
        Engine("memory:", [made])


@pytest.mark.rule("S-3")
def test_a_circle_of_steps_is_refused_by_its_names() -> None:
    made = saga().step("a", work, depends_on=["c"]).step("b", work).step("c", work)
    assert problems(made) == ["the steps wait for one another: a → b → c → a, take one out"]


@pytest.mark.rule("S-30")
def test_a_definition_error_is_reached_by_type_through_what_wraps_it() -> None:
    with pytest.raises(RuntimeError) as raised:
        try:
            Registry.of([saga()])
        except DefinitionError as problem:
            raise RuntimeError("the program cannot begin") from problem
    cause = raised.value.__cause__
    assert isinstance(cause, DefinitionError)
    assert cause.problems == ('saga order: it has no steps: add some, .step("name", function)',)


def _generator(ctx: Any) -> Any:
    yield 1


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: 1, "is called with the context"),
        (_generator, "gives one value: return it, do not yield"),
        (Order, "is no function"),
        (two, "two is called with the payload, and nothing else"),
        (7, "is no function"),
    ],
)
def test_what_cannot_be_called_with_the_context_is_no_step(run: Any, said: str) -> None:
    assert said in problems(saga().step("a", run))[0]


def _unreadable(ctx: SagaContext[Order]) -> Path:
    return Path()


def test_an_output_that_nobody_could_read_back_is_refused() -> None:
    [problem] = problems(saga().step("a", _unreadable))
    assert problem.startswith("step a: its return value can never be read back")
    [problem] = problems(Saga("order", Path).step("a", lambda ctx: None))
    assert problem.startswith("its payload can never be read back")


async def _asks(order: Order) -> bool:
    return True


@pytest.mark.parametrize("when", [_asks, charge, 7, lambda: True])
def test_when_is_a_plain_function_of_the_payload(when: Any) -> None:
    assert problems(saga().step("a", work, when=when))[0].startswith("step a: when=")


def test_an_undo_is_a_function_of_the_context_and_no_step() -> None:
    wrong: Any = charge
    assert (
        "undo=charge would not know what to undo" in problems(saga().step("a", work, undo=wrong))[0]
    )


class _Called:
    async def __call__(self, ctx: SagaContext[Order]) -> None: ...

    def method(self, ctx: SagaContext[Order]) -> None: ...


@pytest.mark.parametrize(
    ("function", "is_async"),
    [
        (work, False),
        (undo, True),
        (_Called(), True),
        (_Called().method, False),
        (functools.partial(undo), True),
        (lambda ctx: None, False),
    ],
)
def test_a_def_goes_to_a_thread_and_an_async_def_to_the_loop(
    function: Callable[[SagaContext[Order]], Any], is_async: bool
) -> None:
    made = saga().step("a", function, undo=function)
    node = made.plan.nodes["a"]
    assert node.undo is not None
    assert node.code.is_async is node.undo.code.is_async is is_async


@pytest.mark.rule("S-10", "D-35", "D-30", "SX-6")
def test_a_declared_step_brings_its_policy_and_a_function_has_one_attempt_without_end() -> None:
    own = Retry(7, initial=2, factor=1, max_delay=2, jitter=0.2)
    made = (
        saga()
        .step("charge", charge)
        .step("other", charge, retry=own, timeout=None)
        .step("work", work, undo=undo, undo_retry=3, undo_timeout="1m")
    )
    nodes = made.plan.nodes
    assert (nodes["charge"].retry, nodes["charge"].timeout) == (charge.retry.policy, 5_000_000)
    assert (nodes["other"].retry, nodes["other"].timeout) == (own.policy, 0)
    assert nodes["work"].retry is not None
    assert (nodes["work"].retry.attempts, nodes["work"].timeout) == (1, 0)
    planned = nodes["work"].undo
    assert planned is not None
    assert (planned.retry.attempts, planned.timeout, planned.unknown) == (3, 60_000_000, True)


def test_the_version_is_what_the_saga_is_unless_it_has_a_label() -> None:
    first, again = saga().step("a", work), saga().step("a", undo)
    assert first.version == again.version == first.hash[:12]
    assert saga().step("a", work, retry=2).hash != first.hash
    assert saga(version="2").step("a", work).version == "2"


def test_another_process_reads_the_steps_without_their_code() -> None:
    made = saga().step("a", work, undo=undo, when=bool).step("charge", charge, depends_on=[])
    read = Saga.recorded(made.source, made.hash, None)
    assert (read.name, read.hash, read.version) == (made.name, made.hash, made.version)
    assert read.planned == ("a", "charge")
    assert read.mermaid() == made.mermaid()
    assert "with undo" in read.mermaid()


def test_two_sagas_of_one_name_are_refused_although_they_look_alike() -> None:
    with pytest.raises(DefinitionError, match="is the name of 2 different things"):
        Registry.of([saga().step("a", work), saga().step("a", undo)])


@workflow(max_duration="1h")
async def deliver(ctx: Any, order: Order) -> str:
    return order.id


def test_a_step_may_be_a_run_of_another_definition() -> None:
    made = saga().step("deliver", deliver, undo=undo)
    node = made.plan.nodes["deliver"]
    assert (node.type, node.workflow) == ("CHILD", "deliver")
    assert "deliver~undo" in made.plan.handlings
