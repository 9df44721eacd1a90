"""What @workflow refuses where it is written: all that is wrong at once, and what to write."""

from __future__ import annotations

import functools
import sys
from datetime import timedelta
from typing import Any

import pytest

from perdure import Context, DefinitionError, Workflow, step, workflow
from perdure.model.errors import InvalidName, InvalidOptions, MissingMaxDuration


async def good(ctx: Context) -> int:
    """Does good."""
    return 1


async def with_input(ctx: Context, amount: int) -> int:
    return amount


class Desk:
    async def method(self, ctx: Context) -> None:
        pass

    async def __call__(self, ctx: Context) -> None:
        pass


def declare(function: Any, **options: Any) -> Workflow[Any, Any]:
    made: Workflow[Any, Any] = workflow(**{"max_duration": None, **options})(function)
    return made


@pytest.mark.rule("W-1", "W-8")
def test_a_workflow_knows_what_was_said_of_it() -> None:
    made = workflow(
        max_duration="2h", retention=timedelta(days=1), description="for tests", aliases=["old-one"]
    )(with_input)
    assert (made.name, made.version, made.takes_input) == ("with-input", "1", True)
    assert (made.max_duration, made.retention) == (7_200_000_000, 86_400_000_000)
    assert (made.description, made.aliases) == ("for tests", ("old-one",))
    assert made.fn is with_input
    assert declare(good).max_duration is None
    assert declare(good).retention == 30 * 86_400_000_000
    assert declare(good).__doc__ == "Does good."


def test_a_function_within_a_function_can_be_a_workflow() -> None:
    async def inner(ctx: Context) -> None:
        pass

    assert declare(inner).name == "inner"


async def none() -> None: ...
async def by_name(ctx: Context, *, amount: int) -> None: ...
async def three(ctx: Context, a: int, b: int) -> None: ...
async def any_number(*args: Any) -> None: ...
def plain(ctx: Context) -> None: ...
def generates(ctx: Context) -> Any:
    yield 1


async def generates_later(ctx: Context) -> Any:
    yield 1


@pytest.mark.rule("W-8", "D-24")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (none, "takes (ctx) or (ctx, input)"),
        (by_name, "put several values into one record"),
        (three, "put several values into one record"),
        (any_number, "takes (ctx) or (ctx, input)"),
        (plain, "a workflow is an `async def`"),
        (generates, "return it, do not yield"),
        (generates_later, "return it, do not yield"),
        (Desk.method, "a method cannot be a workflow"),
        (Desk().method, "put @workflow on a function"),
        (Desk(), "put @workflow on a function"),
        (Desk, "put @workflow on a function"),
        (staticmethod(good), "put @workflow on a function"),
        (classmethod(good), "put @workflow on a function"),
        (functools.partial(good), "put @workflow on a function"),
        (step(none), "put @workflow on a function"),
        (lambda ctx: None, "say @workflow(name=...)"),
        (5, "put @workflow on a function"),
    ],
)
def test_what_cannot_be_a_workflow_is_refused_with_what_to_write(wrong: Any, said: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        declare(wrong)
    assert said in str(refused.value)
    assert str(refused.value).startswith("@workflow on ")


@pytest.mark.rule("W-8", "W-13")
def test_a_workflow_without_a_max_duration_is_refused() -> None:
    with pytest.raises(MissingMaxDuration, match="None = no end"):
        workflow()(good)
    with pytest.raises(MissingMaxDuration, match=r'@workflow\(max_duration="7d"\)'):
        workflow(good)  # type: ignore[arg-type]


@pytest.mark.rule("W-1", "W-8")
@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"name": "Bad Name"}, InvalidName, "workflow name 'Bad Name'"),
        ({"name": "-x"}, InvalidName, "a-z 0-9 -"),
        ({"max_duration": 0}, InvalidOptions, "more than 0"),
        ({"max_duration": "soon"}, InvalidOptions, "not a duration"),
        ({"max_duration": float("nan")}, InvalidOptions, "not finite"),
        ({"max_duration": -1}, InvalidOptions, "negative"),
        ({"retention": -1}, InvalidOptions, "retention -1 is negative"),
        ({"version": ""}, InvalidOptions, "version ''"),
        ({"version": 3}, InvalidOptions, "version 3"),
        ({"aliases": "old"}, InvalidOptions, "give a list of names"),
        ({"aliases": ["Old"]}, InvalidName, "alias 'Old'"),
        ({"description": 5}, InvalidOptions, "description 5"),
    ],
)
def test_options_outside_their_range_are_refused(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as refused:
        declare(good, **options)
    assert said in str(refused.value)


@pytest.mark.rule("D-24", "W-5")
def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(DefinitionError) as refused:
        declare(plain, max_duration=-1, name="Bad", version="", retention=-1, aliases=["X"])
    assert len(refused.value.problems) == 6


@pytest.mark.rule("W-6")
def test_a_workflow_is_made_by_its_decorator_only() -> None:
    with pytest.raises(TypeError, match="use @workflow"):
        Workflow()


def test_annotations_may_name_what_comes_later_in_the_file() -> None:
    # From Python 3.14 on without quotes.
    order = "Order" if sys.version_info >= (3, 14) else "'Order'"
    text = f"async def late(ctx: Context, order: {order}) -> {order}: ...\n"
    text += "made = declare(late)\nclass Order: ..."
    names = {"Context": Context, "declare": declare}
    exec(compile(text, "<later>", "exec", dont_inherit=True), names)
    assert names["made"].takes_input  # type: ignore[attr-defined]
