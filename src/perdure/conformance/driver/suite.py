"""DriverSuite: the scenarios and the cases that are no data, each a method that runners find."""

from __future__ import annotations

import asyncio
import re
import unittest
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from perdure.conformance.driver.effects import DONE, open_gate, until_done
from perdure.conformance.driver.playing import fresh_id, play, refuses
from perdure.conformance.driver.programs.lasting import kit_by_chance
from perdure.conformance.driver.programs.running import (
    kit_same_key,
    kit_seen,
    kit_steps,
    kit_values,
)
from perdure.conformance.driver.programs.telling import (
    Approve,
    anything,
    decision,
    kit_asked,
    kit_messages,
    numbers,
)
from perdure.conformance.driver.scenario import Scenario
from perdure.conformance.driver.scenarios import SCENARIOS
from perdure.conformance.driver.stage import DriverBed, Stage
from perdure.model.errors import (
    AlreadyStarted,
    InvalidId,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    TimedOut,
)

Bed = TypeVar("Bed", bound=DriverBed)


def case(told: Callable[[Bed, Stage], Awaitable[None]]) -> Callable[[Bed], None]:
    """A case, told as a coroutine that is given a stage, as a function without arguments."""

    async def staged(self: Bed) -> None:
        async with Stage(self) as stage:
            await told(self, stage)

    return _begun(staged, told.__name__, told.__doc__)


def _begun(
    work: Callable[[Any], Awaitable[None]], name: str, doc: str | None = None
) -> Callable[[Any], None]:
    def test(self: Any) -> None:
        self.begin()
        try:
            asyncio.run(_awaited(work(self)))
        finally:
            self.end()

    test.__name__, test.__doc__ = name, doc
    return test


async def _awaited(work: Awaitable[None]) -> None:
    await work


class DriverSuite(DriverBed):
    """What every driver has to do. Subclass it, say how a driver is `make`d (see DriverBed), and
    run it: pytest and unittest find the cases, and so does `examine`."""

    @case
    async def test_start_an_id_is_one_run_and_of_many_starts_one_wins(self, stage: Stage) -> None:
        """W-16, W-17."""
        id = fresh_id()

        async def start() -> str:
            try:
                await stage.client.start(kit_steps, ["once"], id=id)
            except AlreadyStarted as error:
                return str(error.run)
            return "won"

        outcomes = await asyncio.gather(*(start() for _ in range(10)))
        assert sorted(outcomes) == [f"kit-steps/{id}"] * 9 + ["won"]
        assert await stage.client.get(kit_steps, id).result(timeout=30) == ["once"]
        joined = await stage.client.start(kit_steps, ["other"], id=id, if_exists="join")
        assert await joined.result() == ["once"]
        assert DONE[id] == ["once"]

    @case
    async def test_start_what_cannot_be_started_is_refused(self, stage: Stage) -> None:
        """W-3, W-24; nothing is there afterwards."""
        client, id = stage.client, fresh_id()
        start: Any = client.start
        await _raises(NotFound, start("kit-unknown", 1, id=id))
        await _raises(InvalidRequest, start(kit_steps, "no list", id=id))
        await _raises(InvalidRequest, start(kit_steps, id=id))
        await _raises(InvalidId, start(kit_steps, [], id=""))
        await _raises(NotFound, client.get(kit_steps, id).status())

    @case
    async def test_start_by_name_is_the_same(self, stage: Stage) -> None:
        """W-55."""
        assert await stage.client.run("kit-steps", ["a"], id=fresh_id(), timeout=30) == ["a"]

    @case
    async def test_result_a_wait_that_ends_early_changes_nothing(self, stage: Stage) -> None:
        """W-19."""
        run = await stage.client.start(kit_asked, id=fresh_id())
        await _raises(TimedOut, run.result(timeout=0.02))
        waiting = asyncio.ensure_future(run.result())
        await asyncio.sleep(0.02)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert await run.status() == "running"
        await run.signal(decision, Approve("ann"))
        assert await run.result(timeout=30) == "approved by ann"

    @case
    async def test_result_of_nobody_is_not_found(self, stage: Stage) -> None:
        """W-18, W-21, W-22."""
        run = stage.client.get(kit_asked, fresh_id())
        await _raises(NotFound, run.result())
        await _raises(NotFound, run.status())
        await _raises(NotFound, run.cancel())
        await _raises(NotFound, run.signal(decision, Approve("ann")))

    @case
    async def test_signals_a_value_that_does_not_fit_is_not_sent(self, stage: Stage) -> None:
        """Refused where it is sent, and the run goes on waiting."""
        run = await stage.client.start(kit_asked, id=fresh_id())
        wrong: Any = {"by": 3}
        await _raises(InvalidRequest, run.signal(decision, wrong))
        await _raises(InvalidRequest, run.signal("", 1))
        await run.signal(decision, Approve("ann"))
        assert await run.result(timeout=30) == "approved by ann"

    @case
    async def test_retries_show_one_key_and_different_calls_different_ones(
        self, stage: Stage
    ) -> None:
        """Stable over attempts, never shared."""
        ids = [fresh_id(), fresh_id()]
        for id in ids:
            await stage.client.run(kit_same_key, 2, id=id, timeout=30)
        first, second = (DONE[id] for id in ids)
        assert (len(first), len(set(first)), len(set(first) | set(second))) == (3, 1, 2)

    @case
    async def test_clock_and_names_are_the_run_s_own(self, stage: Stage) -> None:
        """W-37; times are aware, UTC."""
        id = fresh_id()
        run = await stage.client.start(kit_seen, id=id, metadata={"tenant": "a"})
        seen = await run.result(timeout=30)
        assert seen == [id, "kit-seen", {"tenant": "a"}, False, "UTC"]

    @case
    async def test_payloads_over_the_limit_are_refused_before_anything_is_there(
        self, stage: Stage
    ) -> None:
        """Nothing is half written."""
        id = fresh_id()
        await _raises(PayloadTooLarge, stage.client.start(kit_values, "x" * 5_000_000, id=id))
        await _raises(NotFound, stage.client.get(kit_values, id).status())
        run = await stage.client.start(kit_asked, id=id)
        await _raises(PayloadTooLarge, run.signal(anything, "x" * 5_000_000))
        assert await run.status() == "running"

    @case
    async def test_concurrency_many_runs_and_many_messages(self, stage: Stage) -> None:
        """Each run does its own, once."""
        ids = [fresh_id() for _ in range(40)]
        runs = [await stage.client.start(kit_steps, [id, f"{id}!"], id=id) for id in ids]
        results = await asyncio.gather(*(run.result(timeout=60) for run in runs))
        assert results == [[id, f"{id}!"] for id in ids]
        assert [DONE[id] for id in ids] == results

    @case
    async def test_recovery_what_replay_gives_is_what_was_there(self, stage: Stage) -> None:
        """Times, ids and chance are the same before and after; steps are not done again."""
        ids = [fresh_id(), fresh_id()]
        for id in ids:
            await stage.client.start(kit_by_chance, id=id)
            await until_done(id, "began gate")
        await stage.restart()
        ends = []
        for id in ids:
            open_gate(id, "gate")
            drawn = await stage.client.get(kit_by_chance, id).result(timeout=30)
            assert DONE[id][0] == " ".join(drawn), "what was drawn is not what replay gave"
            ends.append(drawn)
        assert set(ends[0][1:]).isdisjoint(ends[1][1:]), "two runs share chance"

    @case
    async def test_fencing_two_engines_do_each_step_once(self, stage: Stage) -> None:
        """Two processes on one place."""
        try:
            second = Stage(self)
            await second.__aenter__()
        except NotImplementedError:
            raise unittest.SkipTest("a second engine on the same runs cannot be made") from None
        async with second:
            ids = [fresh_id() for _ in range(20)]
            for n, id in enumerate(ids):
                client = (stage if n % 2 else second).client
                await client.start(kit_steps, ["a", "b"], id=id)
            for n, id in enumerate(ids):
                client = (second if n % 2 else stage).client
                assert await client.get(kit_steps, id).result(timeout=60) == ["a", "b"]
            assert [DONE[id] for id in ids] == [["a", "b"]] * 20

    @case
    async def test_signals_many_at_once_are_all_received(self, stage: Stage) -> None:
        """From many senders."""
        run = await stage.client.start(kit_messages, 50, id=fresh_id())
        await asyncio.gather(*(run.signal(numbers, n) for n in range(50)))
        assert sorted(await run.result(timeout=60)) == list(range(50))


async def _raises(kind: type[Exception], work: Awaitable[Any]) -> None:
    try:
        made = await work
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised; it gave {made!r}")


def _told(scenario: Scenario) -> Callable[[Any], None]:
    """A scenario as a method."""

    async def played(self: DriverBed) -> None:
        lacking = [need for need in scenario.needs if getattr(self.capabilities(), need)]
        if lacking:
            await refuses(self, lacking[0])
        else:
            await play(self, scenario)

    words = re.sub(r"\W+", "_", f"{scenario.theme} {scenario.name}").strip("_")
    test = _begun(played, f"test_{words}", f"{scenario.theme}: {scenario.name}")
    setattr(test, "needs", scenario.needs)  # noqa: B010  # functions declare no attributes
    return test


for _scenario in SCENARIOS:
    _test = _told(_scenario)
    assert not hasattr(DriverSuite, _test.__name__), f"two cases are called {_test.__name__}"
    setattr(DriverSuite, _test.__name__, _test)
