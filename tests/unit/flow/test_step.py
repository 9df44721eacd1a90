"""@step: what a declaration makes, what it refuses, and what a call outside a workflow does."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from perdure.flow.step import Step, SyncStep, step
from perdure.model.errors import DefinitionError, InvalidName, InvalidOptions
from perdure.model.policy import Retry


@step
async def send_welcome(to: str) -> str:
    """Say hello."""
    return f"welcome {to}"


@step
def add(a: int, b: int = 1) -> int:
    return a + b


@pytest.mark.rule("W-9", "D-30")
def test_a_bare_step_has_one_attempt_of_a_minute() -> None:
    assert send_welcome.retry.policy.attempts == 1
    assert send_welcome.timeout_us == 60_000_000
    assert (send_welcome.queue, send_welcome.priority, send_welcome.label) == ("default", 0, "")


def test_async_def_makes_a_step_and_def_a_sync_step() -> None:
    assert type(send_welcome) is Step
    assert type(add) is SyncStep
    assert (send_welcome.is_async, add.is_async) == (True, False)


def test_a_step_keeps_its_function_s_name_text_and_signature() -> None:
    assert send_welcome.fn.__name__ == "send_welcome"
    assert send_welcome.__doc__ == "Say hello."
    assert str(inspect.signature(send_welcome)) == "(to: 'str') -> 'str'"
    assert repr(send_welcome) == "<step send-welcome>"


@pytest.mark.rule("D-23", "W-1")
def test_the_name_comes_from_the_function_unless_given() -> None:
    assert send_welcome.name == "send-welcome"
    assert step(name="other")(add.fn).name == "other"
    for name in ("", "Bad", "-a", "a_b", "x" * 65):
        with pytest.raises(InvalidName):
            step(name=name)(add.fn)


def test_a_function_without_a_usable_name_must_be_given_one() -> None:
    with pytest.raises(InvalidName, match=r"or say @step\(name=\.\.\.\)"):
        step(lambda: 1)
    assert step(name="one")(lambda: 1).name == "one"


@pytest.mark.rule("W-9", "D-30")
@pytest.mark.parametrize(
    ("timeout", "limit"),
    [(None, 0), (0, 0), ("0s", 0), ("2m", 120_000_000), (1e-9, 1), (0.5, 500_000)],
)
def test_no_timeout_and_zero_are_no_limit(timeout: Any, limit: int) -> None:
    assert step(timeout=timeout)(add.fn).timeout_us == limit


@pytest.mark.rule("D-24")
@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"timeout": -1}, InvalidOptions),
        ({"timeout": "soon"}, InvalidOptions),
        ({"retry": 0}, InvalidOptions),
        ({"retry": True}, InvalidOptions),
        ({"retry": "3"}, InvalidOptions),
        ({"queue": "Bad Queue"}, InvalidName),
        ({"priority": 1.5}, InvalidOptions),
        ({"priority": 40_000}, InvalidOptions),
    ],
)
def test_a_wrong_option_is_refused_where_the_step_is_written(
    options: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="@step on add: "):
        step(**options)(add.fn)
    with pytest.raises(kind, match="step add: "):
        add.with_options(**options)


@pytest.mark.rule("D-24")
def test_everything_wrong_with_a_step_is_said_at_once() -> None:
    with pytest.raises(DefinitionError) as error:
        wrong: Any = {"name": "No Name", "retry": 0, "timeout": -1, "queue": "", "priority": "x"}
        step(**wrong)(add.fn)
    assert len(error.value.problems) == 5
    for word in ("No Name", "attempts 0", "timeout -1", "queue ''", "priority 'x'"):
        assert word in str(error.value)


def test_a_method_is_refused_with_a_pointer_to_resources() -> None:
    with pytest.raises(DefinitionError, match=r"current_step\(\)\.resource\(Mailer\)"):

        class Mailer:
            @step
            def send(self, to: str) -> None: ...

    with pytest.raises(DefinitionError, match="a method cannot be a step"):

        class Other:
            @classmethod
            @step
            def make(cls) -> None: ...


def test_a_function_inside_a_function_may_call_its_first_parameter_self() -> None:
    def outer() -> Step[..., Any]:
        @step
        def inner(self: int) -> int:
            return self

        return inner

    assert outer().name == "inner"


def test_what_is_not_a_plain_function_is_refused() -> None:
    class Callable:
        def __call__(self) -> None: ...

    def counting() -> Iterator[int]:
        yield 1

    async def streaming() -> AsyncIterator[int]:
        yield 1

    for wrong in (Callable, Callable(), functools.partial(add.fn, 1), len, 5):
        with pytest.raises(DefinitionError, match="put @step on a function"):
            step(name="x")(wrong)  # type: ignore[arg-type,call-overload]
    for wrong in (counting, streaming):
        with pytest.raises(DefinitionError, match="do not yield"):
            step(wrong)


def test_a_call_outside_a_workflow_runs_an_async_def_on_the_spot() -> None:
    @step
    async def where() -> int:
        return threading.get_ident()

    assert asyncio.run(where()) == threading.get_ident()
    assert asyncio.run(send_welcome("ann")) == "welcome ann"


def test_a_call_outside_a_workflow_runs_a_def_in_a_thread_with_the_caller_s_context() -> None:
    colour: ContextVar[str] = ContextVar("colour")

    @step
    def where() -> tuple[int, str]:
        return threading.get_ident(), colour.get()

    async def main() -> tuple[int, str]:
        colour.set("red")
        return await where()

    thread, seen = asyncio.run(main())
    assert thread != threading.get_ident()
    assert seen == "red"


def test_a_call_gives_a_coroutine_that_runs_nothing_until_awaited() -> None:
    ran = []

    @step
    async def note() -> None:
        ran.append(1)

    call = note()
    assert inspect.iscoroutine(call)
    call.close()
    assert ran == []


def test_gather_runs_steps_side_by_side() -> None:
    async def main() -> tuple[str, int]:
        text, number = await asyncio.gather(send_welcome("bob"), add(1, 2))
        return text, number

    assert asyncio.run(main()) == ("welcome bob", 3)


def test_stop_iteration_from_a_def_ends_the_call_and_does_not_hang() -> None:
    @step
    def first() -> int:
        return next(iter([]))

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(first())


@pytest.mark.rule("W-12", "D-33")
def test_with_options_copies_and_leaves_the_step_as_it_was() -> None:
    base = step(retry=3, timeout="5s", queue="slow", priority=2)(add.fn)
    copy = base.with_options(retry=Retry(9, jitter=0.5), timeout=None)
    assert (copy.retry.policy.attempts, copy.timeout_us) == (9, 0)
    assert (copy.name, copy.fn, copy.queue, copy.priority) == ("add", add.fn, "slow", 2)
    assert (base.retry.policy.attempts, base.timeout_us) == (3, 5_000_000)
    assert type(copy) is SyncStep
    assert copy.base is base
    assert copy.with_options(label="twice").base is base


@pytest.mark.rule("W-12")
def test_with_options_does_not_put_defaults_back() -> None:
    again = step(retry=3, timeout="5s")(add.fn).with_options(queue="q").with_options(priority=1)
    assert (again.retry.policy.attempts, again.timeout_us, again.queue) == (3, 5_000_000, "q")


def test_a_step_s_settings_cannot_be_assigned() -> None:
    for name in ("name", "fn", "retry", "timeout_us", "queue"):
        with pytest.raises(AttributeError):
            setattr(add, name, None)


def test_bind_uses_the_function_s_parameters() -> None:
    assert add.bind({"a": 1}) == ((), {"a": 1})
    assert add.with_options(retry=2).bind({"a": 1, "b": 2}) == ((), {"a": 1, "b": 2})
