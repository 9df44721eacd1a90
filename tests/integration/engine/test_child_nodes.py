"""Graphs that start, join and wait for runs of graphs and of workflows."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from perdure import Canceled, Context, Failure, RunFailed, Signal, TimedOut, step, workflow
from perdure.flow.codec import Codec
from perdure.model.errors import StoreError
from tests.virtual.engines import client_on, engine_on, graph, killed, task, wait, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

go = Signal("go", int)
done: list[Any] = []

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


class Declined(Failure, kind="declined", permanent=True):
    pass


@step
async def charge(amount: int) -> int:
    await asyncio.sleep(5)
    if amount < 0:
        raise Declined("no money")
    done.append(amount)
    return amount


@workflow(max_duration="30d")
async def pay(ctx: Context, amount: int) -> dict[str, int]:
    return {"paid": await charge(amount)}


@workflow(max_duration="30d")
async def patient(ctx: Context) -> int:
    return await ctx.wait(go)


def child(id: str, workflow: str | None = None, /, **spec: Any) -> dict[str, Any]:
    """A CHILD node; `rest`: its other keys."""
    rest = spec.pop("rest", {})
    return {"id": id, "type": "CHILD", "spec": {"workflow": workflow or id, **spec}, **rest}


order = graph(
    "order",
    [child("pay", input="{{input.cents}}"), task("charge", "charge", "{{tasks.pay.output.paid}}")],
    output="{{tasks.charge.output}}",
)
shop = graph(
    "shop", [child("order", input={"cents": "{{input}}"})], output="{{tasks.order.output}}"
)


@workflow(max_duration="30d")
async def ships(ctx: Context, cents: int) -> Any:
    return await ctx.child(order, {"cents": cents})


outer = graph("outer", [child("ships", input="{{input}}")], output="{{tasks.ships.output}}")


@STORES
@pytest.mark.parametrize("top", [order, shop, outer])
def test_graphs_and_workflows_call_one_another(kind: type[VirtualStore], top: Any) -> None:
    async def main() -> None:
        store = kind()
        input = {"cents": 7} if top is order else 7
        async with engine_on(store, outer, ships, shop, order, pay, charge) as engine:
            assert await engine.run(top, input, id="1") == 7
            assert done == [7, 7]
            assert engine._shell.live == {}
        kept = [a for a in await store.actions(top.name, "1") if not a.endswith(" charge")]
        node = {"order": "pay", "shop": "order", "outer": "ships"}[top.name]
        want = ["OpenRun", f"CreateTask {node}", f"StartChild {node}", f"ChildFound {node}"]
        assert [a for a in kept if a.split(" ")[0] != "FinishRun"] == [
            *want, f"CompleteTask {node}",
        ]  # fmt: skip

    run(main())


@STORES
def test_a_childs_failure_is_the_nodes(kind: type[VirtualStore]) -> None:
    async def main() -> None:
        async with engine_on(kind(), order, pay, charge) as engine:
            with pytest.raises(Declined, match="node pay failed: no money"):
                await engine.run(order, {"cents": -1}, id="1")
            with pytest.raises(RunFailed, match=r"node pay failed: .*input"):
                await engine.run(order, {"cents": "x"}, id="2")
            assert [info.id async for info in engine.runs(workflow="pay")] == ["order/1/pay"]

    run(main())


@pytest.mark.rule("W-34")
@STORES
def test_a_run_that_is_there_is_joined_with_its_own_input(kind: type[VirtualStore]) -> None:
    joins = graph("joins", [child("pay", id="x", input=9)])
    only = graph("only", [child("pay", id="x")])

    async def main() -> None:
        async with engine_on(kind(), joins, only, pay, charge) as engine:
            with pytest.raises(RunFailed, match="pay needs an input"):
                await engine.run(only, id="1")
            await engine.start(pay, 5, id="x")
            assert await engine.run(joins, id="1") == {"pay": {"paid": 5}}
            assert await engine.run(only, id="2") == {"pay": {"paid": 5}}

    run(main())


@pytest.mark.rule("W-34")
@pytest.mark.parametrize("ends", ["cancel", "deadline", "timeout"])
@pytest.mark.parametrize("joined", [False, True])
@STORES
def test_only_a_run_that_was_made_for_the_node_ends_with_it(
    kind: type[VirtualStore], joined: bool, ends: str
) -> None:
    rest = {"timeout": "1h"} if ends == "timeout" else {}
    top = {"max_duration": "1h"} if ends == "deadline" else {}
    waits = graph("waits", [child("patient", id="p", rest=rest)], **top)

    async def main() -> None:
        store = kind()
        async with engine_on(store, waits, patient) as engine:
            if joined:
                await engine.start(patient, id="p")
            started = await engine.start(waits, id="1")
            await asyncio.sleep(20)
            if ends == "cancel":
                await started.cancel("no more")
                with pytest.raises(Canceled):
                    await started.result()
            elif ends == "deadline":
                with pytest.raises(TimedOut):
                    await started.result()
            else:
                with pytest.raises(TimedOut, match="run patient/p of node patient took longer"):
                    await started.result()
            other = engine.get(patient, "p")
            if joined:
                await other.signal(go, 3)
                assert await other.result() == 3
            else:
                with pytest.raises(Canceled, match="does not wait for it any more"):
                    await other.result()

    run(main())


@STORES
def test_a_further_attempt_is_another_run(kind: type[VirtualStore]) -> None:
    @step
    async def breaks_once() -> int:
        done.append("tried")
        if len(done) == 1:
            raise Failure("not yet")
        return 4

    @workflow(max_duration=None)
    async def shaky(ctx: Context) -> int:
        return await breaks_once()

    tries = graph(
        "tries", [child("shaky", rest={"retry": {"attempts": 3, "initial": "10m", "max_delay": 0}})]
    )

    async def main() -> None:
        store = kind()
        async with engine_on(store, tries, shaky, breaks_once) as engine:
            started = await engine.start(tries, id="1")
            await asyncio.sleep(300)
            assert engine._shell.live == {}  # it waits in the store
            assert await started.result() == {"shaky": 4}
            ids = sorted([info.id async for info in engine.runs(workflow="shaky")])
            assert ids == ["tries/1/shaky", "tries/1/shaky~2"]

    run(main())


@STORES
def test_a_crash_between_two_attempts_loses_neither_the_time_nor_the_input(
    kind: type[VirtualStore],
) -> None:
    large = "x" * 6000

    @workflow(max_duration=None)
    async def second_time(ctx: Context, text: str) -> int:
        if not ctx.id.endswith("~2"):
            raise Failure("not yet")
        return len(text)

    node = child("second-time", id="s", input="{{input}}", rest={"retry": {"attempts": 2}})
    tries = graph("tries", [{**node, "id": "s"}])

    async def main() -> None:
        store = kind()
        async with killed(store, tries, second_time) as first:
            await first.start(tries, large, id="1")
            await asyncio.sleep(0.5)
        async with engine_on(store, tries, second_time) as engine:
            assert await engine.get(tries, "1").result() == {"s": 6000}

    run(main())


@STORES
def test_a_timeout_survives_a_takeover_and_a_child_in_time_disarms_it(
    kind: type[VirtualStore],
) -> None:
    waits = graph(
        "waits",
        [child("patient", id="p", rest={"timeout": "1h"}), wait("pause", "2h")],
    )

    async def main() -> None:
        store = kind()
        async with killed(store, waits, patient) as first:
            await first.start(waits, id="1")
            await first.start(waits, id="2")  # joins
            await asyncio.sleep(60)
        ignored: list[str] = []
        async with engine_on(store, waits, patient, park_after="1d") as engine:
            engine._shell.on_ignored = lambda live, event, why: ignored.append(why)
            await asyncio.sleep(600)
            await engine.get(patient, "p").signal(go, 1)
            assert "pause" in await engine.get(waits, "1").result()
            assert ignored == []
        async with killed(store, waits, patient) as first:
            await first.start(graph("late", [child("patient", id="q", rest={"timeout": 9000})]),
                              id="1")  # fmt: skip
            await asyncio.sleep(60)
        late = graph("late", [child("patient", id="q", rest={"timeout": 9000})])
        async with engine_on(store, late, patient) as engine:
            with pytest.raises(TimedOut):
                await engine.get(late, "1").result()
            with pytest.raises(Canceled):
                await engine.get(patient, "q").result()

    run(main())


@STORES
def test_drain_waits_for_the_end_of_the_runs_that_it_ends(kind: type[VirtualStore]) -> None:
    @workflow(max_duration=None)
    async def tidies(ctx: Context) -> None:
        try:
            await ctx.wait(go)
        finally:
            await charge(1)

    fails = graph(
        "fails", [{"id": "f", "type": "FORK"}, task("bad", "charge", -1), child("tidies")],
        ["f bad", "f tidies"], on_failure="drain",
    )  # fmt: skip

    async def main() -> None:
        async with engine_on(kind(), fails, tidies, charge) as engine:
            started = await engine.start(fails, id="1")
            with pytest.raises(Declined, match="node bad failed"):
                await started.result()
            assert done == [1]
            with pytest.raises(Canceled, match="is ending"):
                await engine.get(tidies, "fails/1/tidies").result()

    run(main())


@STORES
def test_a_run_that_waits_for_a_child_leaves_memory_and_comes_back_with_its_end(
    kind: type[VirtualStore],
) -> None:
    # scenario 208
    waits = graph("waits", [child("patient", id="p")])

    async def main() -> None:
        async with engine_on(kind(), waits, patient) as engine:
            started = await engine.start(waits, id="1")
            await asyncio.sleep(3600)
            assert engine._shell.live == {}
            await engine.get(patient, "p").signal(go, 4)
            assert await started.result() == {"patient": 4}

    run(main())


@STORES
def test_a_delayed_start_asks_for_its_child_when_it_is_due(kind: type[VirtualStore]) -> None:
    node = child("patient", id="p", rest={"timeout": "1h"})
    waits = graph("waits", [{"id": "f", "type": "FORK"}, node, wait_for("w", "other")],
                  ["f patient", "f w"])  # fmt: skip

    async def main() -> None:
        store = kind()
        async with engine_on(store, waits, patient) as engine:
            started = await engine.start(waits, id="1", delay="2h")
            await started.signal("other", 1)  # it comes into memory
            await asyncio.sleep(3600 * 1.5)
            assert [info.workflow async for info in engine.runs()] == ["waits"]
            await asyncio.sleep(3600)
            await engine.get(patient, "p").signal(go, 4)
            assert (await started.result())["patient"] == 4

    run(main())


@STORES
def test_a_paused_run_asks_for_no_child_until_it_is_unpaused(kind: type[VirtualStore]) -> None:
    waits = graph("waits", [wait_for("w", "go"), child("pay", input=3)])

    async def main() -> None:
        store = kind()
        async with killed(store, waits, pay, charge) as first:
            started = await first.start(waits, id="1")
            await started.pause()
            await started.signal("go", 1)
            await asyncio.sleep(5)
            assert "StartChild pay" in await store.actions("waits", "1")
            assert [info.workflow async for info in first.runs()] == ["waits"]
        async with engine_on(store, waits, pay, charge) as engine:
            await asyncio.sleep(60)
            assert [info.workflow async for info in engine.runs()] == ["waits"]
            again = engine.get(waits, "1")
            await again.unpause()
            assert await again.result() == {"pay": {"paid": 3}}

    run(main())


@STORES
def test_a_retried_run_joins_its_child_which_was_retried_before(kind: type[VirtualStore]) -> None:
    broken = [True]

    @step
    async def mended() -> int:
        if broken[0]:
            raise Failure("not yet", kind="broken")
        return 5

    inner = graph("inner", [task("mended")], output="{{tasks.mended.output}}")
    top = graph("top", [child("inner")])

    async def main() -> None:
        async with engine_on(kind(), top, inner, mended) as engine:
            started = await engine.start(top, id="1")
            with pytest.raises(RunFailed):
                await started.result()
            await started.retry(failed=True)
            with pytest.raises(RunFailed):  # its child is as it was
                await started.result()
            broken[0] = False
            await engine.get(inner, "top/1/inner").retry(failed=True)
            await started.retry(failed=True)
            assert await started.result() == {"inner": 5}

    run(main())


@STORES
def test_a_published_document_is_asked_for_by_its_name(kind: type[VirtualStore]) -> None:
    inner = graph("inner", [task("charge", "charge", "{{input}}")])
    top = graph("top", [child("inner", input="{{input}}")])
    large = "x" * 6000

    async def main() -> None:
        store = kind()
        async with engine_on(store, top) as engine:
            await client_on(store).publish(inner)
            started = await engine.start(top, 3, id="1")
            await asyncio.sleep(60)
            run_ = await engine.get(inner, "top/1/inner").describe()
            assert (run_.status, run_.stalled) == ("running", None)
            async with engine_on(store, inner, charge):
                assert await started.result() == {"inner": {"charge": 3}}
            assert len(large) == 6000

    run(main())


@STORES
def test_a_name_that_nobody_knows_fails_the_node_and_code_that_is_elsewhere_is_asked_for(
    kind: type[VirtualStore],
) -> None:
    top = graph("top", [child("pay", "{{input}}", input=3)])

    async def main() -> None:
        store = kind()
        async with engine_on(store, top, charge) as engine:
            with pytest.raises(RunFailed, match=r"node pay failed: .*payy"):
                await engine.run(top, "payy", id="1")
            async with engine_on(store, pay, charge):
                pass  # it is known from now on
            started = await engine.start(top, "pay", id="2")
            await asyncio.sleep(60)
            assert (await started.describe()).stalled is None
            assert (await engine.get("pay", "top/2/pay").describe()).status == "running"
        async with engine_on(store, top, pay, charge) as engine:
            assert await engine.get(top, "2").result() == {"pay": {"paid": 3}}

    run(main())


class Reversed(Codec):
    def encode(self, value: object, /) -> bytes:
        return msgspec.json.encode(super().encode(value).decode()[::-1])

    def decode(self, data: bytes, type: Any, /) -> Any:
        return super().decode(msgspec.json.decode(data, type=str)[::-1].encode(), type)


@STORES
def test_values_cross_the_border_to_a_codec_of_the_typed_doors_and_back(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        things = (outer, ships, order, pay, charge)
        async with engine_on(store, *things, codec=Reversed()) as engine:
            assert await engine.run(outer, 7, id="1") == 7
            assert done == [7, 7]

    run(main())


@STORES
def test_a_run_that_is_joined_with_an_input_of_which_none_could_be_made_is_read_by_its_codec(
    kind: type[VirtualStore],
) -> None:
    joins = graph("joins", [child("pay", id="p", input="{{input}}")])

    async def main() -> None:
        async with engine_on(kind(), pay, charge, joins, codec=Reversed()) as engine:
            await engine.run(pay, 7, id="p")
            assert await engine.run(joins, "no number", id="1") == {"pay": {"paid": 7}}

    run(main())


def test_a_client_without_workers_starts_a_graph_whose_first_node_is_a_child() -> None:
    async def main() -> None:
        store = VirtualStore()
        await client_on(store).start(order, {"cents": 7}, id="1")
        async with engine_on(store, order, pay, charge) as engine:
            assert await engine.get(order, "1").result() == 7

    run(main())


class Away(VirtualStore):
    """Does not answer the first times it is asked for a definition by name, or for a value."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = {"definition": 0, "value": 0}

    def _answers(self, what: str) -> None:
        if self.failures[what]:
            self.failures[what] -= 1
            raise StoreError("the disk is away")

    async def latest_definition(self, name: str) -> Any:
        self._answers("definition")
        return await super().latest_definition(name)

    async def payloads(self, key: bytes, refs: Any) -> Any:
        self._answers("value")
        return await super().payloads(key, refs)


@pytest.mark.rule("G-9")
def test_what_a_call_has_to_read_is_read_again_until_the_store_answers() -> None:
    # the definition for the first attempt, the input for the second, after a takeover
    large = {"text": "x" * 6000}
    again = {"attempts": 2, "initial": "1m", "max_delay": 0}
    top = graph("top", [child("fails", input=large, rest={"retry": again})])
    fails = graph("fails", [task("fail", "fail", "{{input.text}}", retry={"attempts": 1})])

    @step
    async def fail(text: str) -> None:
        done.append(len(text))
        if len(done) == 1:  # the run fails, and the call with it
            raise RuntimeError("not yet")

    async def main() -> None:
        store = Away()
        async with engine_on(store, fails, fail):
            await asyncio.sleep(1)
        async with killed(store, top) as engine:
            store.failures["definition"] = 3
            await engine.start(top, id="1")
            await asyncio.sleep(5)
            assert store.failures["definition"] == 0
            async with engine_on(store, fails, fail):
                await asyncio.sleep(5)
        store.failures["value"] = 3
        async with engine_on(store, top, fails, fail) as engine:
            handle = engine.get(top, "1")
            while (await handle.status()) == "running":
                assert (await handle.describe()).stalled is None
                await asyncio.sleep(10)
            assert await handle.result() == {"fails": {"fail": None}}
        assert store.failures["value"] == 0
        assert done == [6000, 6000]

    run(main())
