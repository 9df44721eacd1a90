"""What is recorded decides: the order of outcomes, the values and failures that others see, and who
was first of a signal and its timeout. Live, after a crash, and in another process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from perdure.flow.step import step
from perdure.model.errors import Failure, NotFound
from tests.virtual.engines import client_on, engine_on, graph, killed, node, task, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore


@step
async def take(seconds: float, value: Any = None) -> Any:
    await asyncio.sleep(seconds)
    return value


def timed(id: str, seconds: float, value: Any = None) -> dict[str, Any]:
    return task(id, "take", {"seconds": seconds, "value": value})


@pytest.mark.rule("G-5", "G-57")
@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_branches_are_begun_in_the_order_of_the_edges_and_recorded_in_that_of_their_ends(
    kind: type[VirtualStore],
) -> None:
    # scenarios 1, 2
    g = graph(
        "g",
        [node("f", "FORK"), timed("a", 3), timed("b", 1), timed("c", 2), node("j", "JOIN")],
        ["f a", "f b", "f c", "a j", "b j", "c j"],
    )

    async def main() -> None:
        store = kind()
        async with killed(store, g, take) as engine:
            await engine.start(g, id="1")
            await asyncio.sleep(1.5)
        async with engine_on(store, g, take) as engine:
            await engine.get(g, "1").result()
        actions = await store.actions("g", "1")
        begun = [a for a in actions if a.startswith("DispatchTask")]
        ended = [a for a in actions if a.startswith("CompleteTask")]
        assert begun == ["DispatchTask a", "DispatchTask b", "DispatchTask c"]
        assert ended == ["CompleteTask b", "CompleteTask c", "CompleteTask a"]

    run(main())


@pytest.mark.parametrize("signalled", [4.9, 5.0, 5.1])
@pytest.mark.parametrize("crashes", [False, True])
def test_of_a_signal_and_its_timeout_the_one_recorded_first_counts_for_ever(
    signalled: float, crashes: bool
) -> None:
    # scenario 9: whoever looks at it later, and in whatever order things reach him then
    g = graph("g", [wait_for("w", "go", "5s"), timed("a", 30)])

    async def main() -> None:
        store = LateStore()
        async with killed(store, g, take) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(signalled)
            with suppress(NotFound):  # it had timed out, and ended
                await started.signal("go", "here")
            await asyncio.sleep(1)
            first = await store.actions("g", "1")
            if not crashes:
                await asyncio.sleep(60)
        async with engine_on(store, g, take) as engine:
            await engine.start(g, id="1", if_exists="join")
            await asyncio.sleep(60)
            actions = [a for a in await store.actions("g", "1") if a != "Claimed"]
            assert actions[: len(first)] == first
            assert sum(action == "ResolveWait w" for action in actions) == 1
            came = "DispatchTask a" in actions
            assert came if signalled < 5 else True
            assert not came if signalled > 5 else True
            assert await engine.get(g, "1").status() == ("completed" if came else "failed")

    run(main())


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_what_a_step_returned_is_seen_as_it_was_recorded_also_before_any_crash(
    kind: type[VirtualStore],
) -> None:
    # scenario 15: a tuple is a list from the first moment on
    seen: list[Any] = []

    @step
    async def make() -> Any:
        return {"a": ("a", None), "b": (1, 2)}

    @step
    async def look(value: Any) -> Any:
        seen.append(value)
        await asyncio.sleep(10)
        return value

    g = graph("g", [task("make"), task("look", input={"value": "{{tasks.make.output}}"})])

    async def main() -> None:
        store = kind()
        async with killed(store, g, make, look) as engine:
            await engine.start(g, id="1")
            await asyncio.sleep(5)
        async with engine_on(store, g, make, look) as engine:
            live = await engine.get(g, "1").result()
        later = await client_on(store).get("g", "1").result()
        expected = {"a": ["a", None], "b": [1, 2]}
        assert seen == [expected, expected]
        assert (live, later) == ({"look": expected}, {"look": expected})

    run(main())


class Declined(Failure, kind="card.declined"):
    """The bank says no."""


def test_a_failure_reads_the_same_where_it_happened_and_wherever_it_is_read_later() -> None:
    # scenario 16: of an error only what is recorded is ever seen
    @step
    async def pay() -> None:
        try:
            raise ValueError("in here only")
        except ValueError as error:
            raise Declined("not today", details={"left": 3}) from error

    g = graph("g", [task("pay")])

    async def main() -> None:
        store = VirtualStore()
        failures: list[Any] = []
        async with engine_on(store, g, pay) as engine:
            with pytest.raises(Declined) as live:
                await (await engine.start(g, id="1")).result()
            failures.append((await engine.get(g, "1").describe()).failure)
        client = client_on(store)
        with pytest.raises(Declined) as later:
            await client.get("g", "1").result()
        failures.append((await client.get("g", "1").describe()).failure)
        one, other = live.value, later.value
        for name in ("kind", "message", "details", "permanent", "args"):
            assert getattr(one, name) == getattr(other, name), name
        assert (repr(one.__cause__), one.__cause__ is None) == (repr(other.__cause__), False)
        assert str(failures[0]) == str(failures[1])
        assert all("in here only" not in str(action) for action in await store.journal("g", "1"))

    run(main())
