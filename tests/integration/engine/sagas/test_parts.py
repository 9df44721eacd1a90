"""Sagas in sagas: what a run that another asked for says of what it did, and what is done about it.

Each on a store in memory and on SQLite.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure import Canceled, Failure, RunFailed, Saga, SagaContext, TimedOut
from tests.virtual.engines import engine_on
from tests.virtual.stores import VirtualFile, VirtualStore
from tests.virtual.threads import run

SEEN: list[str] = []


class NoFunds(Failure, kind="test.parts.no-funds"):
    pass


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


@pytest.fixture(params=["memory", "sqlite"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """A new store."""
    if request.param == "sqlite":
        return lambda: VirtualFile(tmp_path / "a.db", synchronous="normal")
    return VirtualStore


async def work(ctx: SagaContext[str]) -> None:
    SEEN.append(f"{ctx.workflow}.{ctx.node}")


async def undo(ctx: SagaContext[str]) -> None:
    SEEN.append(f"{ctx.workflow}.{ctx.node}")


async def slow(ctx: SagaContext[str]) -> None:
    await asyncio.sleep(1000)


async def bad(ctx: SagaContext[str]) -> None:
    await asyncio.sleep(5)
    raise NoFunds("no funds")


def inner(last: Any = slow, **options: Any) -> Saga[str]:
    return Saga("inner", str, **options).step("pay", work, undo=undo).step("last", last)


def outer(child: Saga[str], **options: Any) -> Saga[str]:
    return (
        Saga("outer", str, **options).step("book", work, undo=undo)
        .step("part", child, undo=undo).step("after", work)
    )  # fmt: skip


def canceled(fresh: Callable[[], Any], child: Saga[str], after: float = 10) -> Failure:
    """What the outer run ends with when it is canceled while the inner one goes on."""

    async def main() -> Failure:
        made = outer(child)
        async with engine_on(fresh(), child, made) as engine:
            started = await engine.start(made, "ann", id="1")
            await asyncio.sleep(after)
            await started.cancel("enough")
            with pytest.raises(Canceled, match="enough") as ended:
                await started.result()
            return ended.value

    return run(main())


@pytest.mark.rule("D-18", "S-15")
def test_a_part_that_undid_what_it_did_is_not_undone_once_more(fresh: Callable[[], Any]) -> None:
    ended = canceled(fresh, inner(undo_on=["cancel"]))
    # `last` was stopped in the middle: nobody knows what it did, and it has no undo.
    assert SEEN == [
        "outer.book",
        "inner.pay",
        "inner.pay~undo",
        "outer.part~undo",
        "outer.book~undo",
    ]
    assert ended.details == {"undone": ["part", "book"], "undo_failed": [], "unknown": ["part"]}


@pytest.mark.rule("D-18", "S-15")
def test_a_part_that_says_that_nothing_is_left_did_nothing(fresh: Callable[[], Any]) -> None:
    child = Saga("inner", str).step("pay", work, undo=undo).step("last", slow, undo=undo)
    ended = canceled(fresh, child)
    assert SEEN == [
        "outer.book", "inner.pay", "inner.last~undo", "inner.pay~undo", "outer.book~undo",
    ]  # fmt: skip
    assert ended.details == {"undone": ["book"], "undo_failed": [], "unknown": []}
    assert ended.compensated


@pytest.mark.rule("D-18", "S-15")
def test_a_part_that_does_not_undo_when_it_is_canceled_may_have_left_all(
    fresh: Callable[[], Any],
) -> None:
    ended = canceled(fresh, inner(undo_on=["failure"]))
    assert SEEN == ["outer.book", "inner.pay", "outer.part~undo", "outer.book~undo"]
    assert ended.details == {"undone": ["part", "book"], "undo_failed": [], "unknown": ["part"]}
    assert ended.compensated


def failed(fresh: Callable[[], Any], made: Saga[str], *children: Saga[str]) -> Failure:
    async def main() -> Failure:
        async with engine_on(fresh(), *children, made) as engine:
            with pytest.raises(Failure) as ended:
                await engine.run(made, "ann", id="1")
            return ended.value

    return run(main())


@pytest.mark.rule("D-18", "S-15")
@pytest.mark.parametrize("undo_on", [["failure"], ["cancel"]])
def test_a_part_that_failed_of_its_own_is_taken_at_its_word(
    fresh: Callable[[], Any], undo_on: Any
) -> None:
    child = inner(bad, undo_on=undo_on)
    ended = failed(fresh, outer(child), child)
    details: Any = ended.details
    assert (details["undone"], details["unknown"]) == (["book"], [])
    assert ("inner.pay~undo" in SEEN) == (undo_on == ["failure"])
    assert isinstance(ended, NoFunds)
    assert ended.compensated


@pytest.mark.rule("D-1", "D-18")
def test_what_ends_a_run_says_whether_all_was_undone_of_whatever_class_it_is(
    fresh: Callable[[], Any],
) -> None:
    async def closed(ctx: SagaContext[str]) -> None:
        raise ValueError("the bank is closed")

    late = Saga("late", str, max_duration="30s").step("pay", work, undo=undo)
    ended = failed(fresh, late.step("slow", slow, undo=undo, timeout="1h"))
    assert isinstance(ended, TimedOut)
    assert ended.compensated

    unsure = failed(fresh, Saga("u", str).step("pay", work, undo=undo).step("s", slow, timeout=1))
    assert isinstance(unsure, TimedOut)
    assert unsure.details["unknown"] == ["s"]  # type: ignore[index,call-overload]
    assert not unsure.compensated, "nobody knows what `s` did, and nothing undid it"

    stuck = failed(fresh, Saga("stuck", str).step("pay", work, undo=closed).step("bad", bad))
    assert isinstance(stuck, NoFunds)
    assert not stuck.compensated

    nothing = failed(fresh, Saga("nothing", str).step("bad", bad, undo=undo))
    assert not nothing.compensated
    assert not NoFunds("never").compensated
    assert not RunFailed("never").compensated
