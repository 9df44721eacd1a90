"""`perdure watch` without a run: all that run, of all three doors, as others work on them."""

from __future__ import annotations

import asyncio
import io
import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Failure, Retry, Saga, SagaContext
from perdure.cli.running import Running, Seen
from perdure.cli.running_lines import Frames, RunningLines, standing
from perdure.cli.watch_all import watch_all
from perdure.client.client import Client
from perdure.client.engine import Engine
from perdure.feed import RunView
from perdure.model.errors import StoreError
from perdure.model.moments import moment
from perdure.stores.answers import RunRow
from perdure.stores.sqlite.store import SqliteStore
from tests.cli.commands import GREETING, SLOW, perdure, start, wait_for_call, write
from tests.virtual.engines import engine_on, graph, wait_for
from tests.virtual.loop import BEGIN, run, settle
from tests.virtual.stores import VirtualStore

ANN = '{"name": "Ann"}'
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
waiter = graph("waiter", [wait_for("a", "one"), wait_for("b", "two")])


class NoTruck(Failure, kind="running-no-truck"):
    """None left."""


async def reserve(ctx: SagaContext[int]) -> None:
    await asyncio.sleep(1)


async def release(ctx: SagaContext[int]) -> None:
    await asyncio.sleep(5)


async def ship(ctx: SagaContext[int]) -> None:
    raise NoTruck("no truck")


shop = (
    Saga("shop", int, max_duration="1h")
    .step("reserve", reserve, undo=release)
    .step("ship", ship, retry=Retry(2, initial=3))
)


def now() -> datetime:
    return moment(BEGIN) + timedelta(seconds=asyncio.get_running_loop().time())


def names(seen: list[Seen]) -> list[str]:
    return [f"{one.view.workflow}/{one.view.id}" for one in seen]


def test_what_runs_is_followed_until_it_has_ended_and_told_once_of_that() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, waiter, shop) as engine:
            await engine.start(waiter, id="1")
            await engine.start(shop, 1, id="1")
            looking = Running(store)
            first = await looking.look()
            assert names(first) == ["waiter/1", "shop/1"]
            assert all(one.new and one.changed for one in first)
            again = await looking.look()
            assert [(one.new, one.changed) for one in again] == [(False, False)] * 2
            await engine.get("waiter", "1").signal("one")
            await settle()
            assert [one.changed for one in await looking.look()] == [True, False]
            await engine.get("waiter", "1").signal("two")
            await asyncio.sleep(20)
            last = await looking.look()
            assert [one.view.outcome for one in last] == ["completed", "failed"]
            assert await looking.look() == []
            await engine.start(waiter, id="2")
            assert names(await looking.look()) == ["waiter/2"]

    run(main())


def test_so_many_are_followed_and_the_rest_is_counted() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, waiter) as engine:
            for number in range(5):
                await engine.start(waiter, id=str(number))
                await asyncio.sleep(1)
            looking = Running(store, room=2)
            assert names(await looking.look()) == ["waiter/3", "waiter/4"]
            assert looking.more == 3
            await engine.start(waiter, id="5")
            assert names(await looking.look()) == ["waiter/3", "waiter/4"], "they stay"
            assert looking.more == 4
            await engine.get("waiter", "3").cancel()
            await settle()
            seen = await looking.look()
            assert names(seen) == ["waiter/3", "waiter/4", "waiter/5"]
            assert seen[0].view.outcome == "canceled"
            assert names(await looking.look()) == ["waiter/4", "waiter/5"]
            assert looking.more == 3

    run(main())


def test_a_run_that_is_gone_from_the_store_is_followed_no_more() -> None:
    class Forgetful(VirtualStore):
        gone = False

        async def find(self, query: Any) -> Any:
            return [] if self.gone else await super().find(query)

        async def rows(self, key: bytes, after: int, limit: int) -> Any:
            return [] if self.gone else await super().rows(key, after, limit)

        async def describe(self, definition: str, id: str) -> Any:
            return await super().describe(definition, "none" if self.gone else id)

    async def main() -> None:
        store = Forgetful()
        async with engine_on(store, waiter) as engine:
            await engine.start(waiter, id="1")
            looking = Running(store)
            assert names(await looking.look()) == ["waiter/1"]
            store.gone = True
            assert await looking.look() == []
            store.gone = False

    run(main())


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that were printed, without their times."""
    return [line.split("  ", 1)[1] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.rule("S-29")
def test_each_change_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        store, lines = VirtualStore(), RunningLines(now)
        async with engine_on(store, shop) as engine:
            looking = Running(store)
            await engine.start(shop, 1, id="1")
            for _ in range(6):
                lines.show(await looking.look(), looking.more)
                await asyncio.sleep(2.2)

    run(main())
    assert told(capsys) == [
        "shop/1  is running: 0 of 2 done; reserve running",
        "shop/1  reserve  done",
        "shop/1  ship  retrying (attempt 2): no truck",
        "shop/1  reserve~undo  running",
        "shop/1  ship  failed (attempt 2): no truck",
        "shop/1  reserve  compensated",
        "shop/1  failed (after 9.00 s)",
    ]


def seen_of(view: RunView, **more: Any) -> Seen:
    return Seen(view, more.get("stalled"), more.get("new", False), more.get("changed", True))


def view_of(*steps: str) -> RunView:
    view = RunView("shop", "1", started=NOW)
    view.plan(steps)
    return view


def test_a_stalled_run_says_why_until_it_goes_on_and_more_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines, view = RunningLines(), view_of("a")
    lines.show([seen_of(view, new=True)], 0)
    lines.show([seen_of(view, stalled="no code\x1b[2J")], 7)
    lines.show([seen_of(view, stalled="no code\x1b[2J")], 7)
    lines.show([seen_of(view)], 0)
    printed = capsys.readouterr()
    assert [line.split("  ", 2)[2] for line in printed.out.splitlines()] == [
        "is running: 0 of 1 done", "cannot go on: no code\\x1b[2J", "goes on",
    ]  # fmt: skip
    assert printed.err == "perdure: and 7 more are running that are not shown\n"


def test_how_a_run_stands_is_told_in_few_words() -> None:
    view = view_of("a", "b", "c", "d", "e")
    assert standing(view, NOW) == "0 of 5 done"
    view.done("a", NOW)
    for step in ("b", "c", "d"):
        view.begun(step, 1, NOW)
    view.retries("b", 2, "time\nout", NOW + timedelta(hours=1))
    assert standing(view, NOW) == (
        "1 of 5 done; b retrying (attempt 2): time out, c running and 1 more"
    )
    view.pauses(NOW)
    assert standing(view, NOW).startswith("paused; 1 of 5 done")
    view.unpauses(NOW)
    for step in ("b", "c", "d"):
        view.fails(step, "Nope", f"no {step}", NOW)
    assert standing(view, NOW) == "1 of 5 done; d failed: no d"
    view.undoing = True
    view.begun("a~undo", 1, NOW)
    assert standing(view, NOW) == "undoing; a~undo running"


def test_frames_are_a_document_a_line_for_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    view = view_of("a")
    Frames().show([seen_of(view), seen_of(view_of("b"), changed=False)], 0)
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {
        "execution_id": "1", "workflow": "shop", "trigger": "start",
        "steps": [{"name": "a", "state": "pending"}],
    }  # fmt: skip


def test_the_picture_has_a_line_for_each_run_and_a_sign_for_each_step() -> None:
    console = pytest.importorskip("rich.console", reason="rich is not installed")
    from perdure.cli.running_picture import RunningPicture, signs

    picture = RunningPicture()

    def drawn(height: int = 40) -> list[list[str]]:
        out = io.StringIO()
        console.Console(file=out, width=90, height=height).print(picture.drawing(height))
        return [line.split() for line in out.getvalue().splitlines()]

    assert drawn() == [["nothing", "is", "running"]]
    view = view_of("a", "b", "c")
    view.started = datetime.now(UTC)
    view.done("a", NOW)
    view.begun("b", 1, NOW)
    over = view_of("a", "b")
    over.id, over.ended = "2", NOW + timedelta(seconds=3)
    over.done("a", NOW)
    over.done("a~undo", NOW)
    over.fails("b", "Nope", "no", NOW)
    over.ends("failed", NOW + timedelta(seconds=3))
    stuck = view_of("a")
    stuck.id = "3"
    picture.show([seen_of(view), seen_of(over), seen_of(stuck, stalled="no code")], 4)
    lines = drawn()
    assert lines[0][:2] == ["shop/2", "↶✗"]
    assert lines[0][-1] == "failed"
    assert lines[1][:2] == ["shop/1", "✓▸·"]
    assert " ".join(lines[1]).endswith("1 of 3 done; b running")
    assert " ".join(lines[2]).endswith("cannot go on: no code")
    assert lines[3] == ["…", "and", "4", "more"]
    many = view_of(*(f"s{number}" for number in range(100)))
    many.begun("s50", 1, NOW)
    assert len(signs(many, NOW).plain) == 26
    assert "▸" in signs(many, NOW).plain
    picture.show([seen_of(view_of("a")) for _ in range(50)], 0)
    assert len(drawn(height=10)) == 8


def test_a_store_that_does_not_answer_for_a_while_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("perdure.cli.watch_all.LOOK", 0.01)
    answers: list[Any] = [None, StoreError("gone"), StoreError("gone"), None, StoreError("gone")]

    async def find(self: SqliteStore, query: Any) -> list[RunRow]:
        answer = answers.pop(0) if answers else None
        if answer is not None:
            raise answer
        return []

    monkeypatch.setattr(SqliteStore, "find", find)
    perdure("db", "migrate", "--store", f"sqlite:///{tmp_path}/x.db")
    asyncio.run(watch_all(f"sqlite:///{tmp_path}/x.db", 0.2, as_json=False))
    assert answers == []
    assert capsys.readouterr().err.splitlines() == [
        "perdure: nothing is running; what starts is shown, until Ctrl-C",
        *["perdure: the store does not answer, and is asked again: gone"] * 2,
    ]


class Broken(VirtualStore):
    """Where something of some runs cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self.calls: set[str] = set()
        self.hidden: set[str] = set()

    async def find(self, query: Any) -> Any:
        return [row for row in await super().find(query) if row.id not in self.hidden]

    async def rows(self, key: bytes, after: int, limit: int) -> Any:
        if self._runs[key].new.id in self.broken:
            raise StoreError("unreadable")
        return await super().rows(key, after, limit)

    async def describe(self, definition: str, id: str) -> Any:
        self.refuse("describe")
        return await super().describe(definition, id)

    async def definitions(self, name: str | None = None) -> Any:
        self.refuse("definitions")
        return await super().definitions(name)

    def refuse(self, call: str) -> None:
        if call in self.calls:
            raise StoreError("unreadable")


@pytest.mark.parametrize("broken", ["0", "2", "new"])
def test_a_run_that_cannot_be_read_hides_neither_the_end_nor_the_start_of_another(
    broken: str,
) -> None:
    async def main() -> None:
        store = Broken()
        async with engine_on(store, waiter) as engine:
            for id in ("0", "1", "2"):
                await engine.start(waiter, id=id)
            looking = Running(store)
            await looking.look()
            for id in ("0", "1", "2", "new", "also-new"):
                if "new" in id:
                    await engine.start(waiter, id=id)
                else:
                    await engine.get(waiter, id).cancel()
                await settle()
            store.broken = {broken}
            seen = {one.view.id: one for one in await looking.look()}
            assert looking.trouble == "unreadable"
            rest = {"0": "canceled", "1": "canceled", "2": "canceled", "new": "", "also-new": ""}
            late = {broken: rest.pop(broken)}
            assert {id: one.view.outcome for id, one in seen.items()} == rest
            assert {id for id, one in seen.items() if one.new} == {"new", "also-new"} - {broken}
            store.broken = set()
            seen = {one.view.id: one for one in await looking.look()}
            assert looking.trouble == ""
            told = {id: one.view.outcome for id, one in seen.items() if one.changed}
            assert told == late, "what could not be read is told of by the next look"

    run(main())


def test_what_one_look_read_before_the_store_failed_is_told_of_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("perdure.stores.paging.PAGE", 1)

    class Halfway(VirtualStore):
        left = 10**6

        async def rows(self, key: bytes, after: int, limit: int) -> Any:
            self.left -= 1
            if self.left < 0:
                raise StoreError("unreadable")
            return await super().rows(key, after, limit)

    async def main() -> None:
        store = Halfway()
        async with engine_on(store, waiter) as engine:
            started = await engine.start(waiter, id="1")
            looking = Running(store)
            await looking.look()
            await started.signal("one")
            await settle()
            store.left = 1  # the row is read; whether there are more is not known
            assert await looking.look() == []
            assert looking.trouble
            store.left = 10**6
            [seen] = await looking.look()
            assert seen.changed
            assert seen.view.steps["a"].state == "done"

    run(main())


@pytest.mark.parametrize("call", ["describe", "definitions"])
def test_nor_does_a_question_that_is_not_answered(call: str) -> None:
    """Whether the second run, of which nothing is heard any more, is still there; how many run."""

    async def main() -> None:
        store = Broken()
        async with engine_on(store, waiter) as engine:
            ids = ["0", "1"] if call == "describe" else ["0", "1", "2", "3"]
            started = [await engine.start(waiter, id=id) for id in reversed(ids)]
            looking = Running(store, room=2)
            assert names(await looking.look()) == ["waiter/1", "waiter/0"]
            await started[-1].cancel()
            await settle()
            store.calls = {call}
            store.hidden = {"1"} if call == "describe" else set()
            seen = {one.view.id: one.view.outcome for one in await looking.look()}
            assert seen["0"] == "canceled"
            assert looking.trouble == "unreadable"

    run(main())


@pytest.mark.usefixtures("folder")
def test_watch_shows_what_another_process_works_on_and_ends_in_time() -> None:
    write("slow.json", SLOW)
    working = start(
        "run", "slow.json", "--app", "steps.py", "--input", '{"name": "Ann"}', "--id", "1"
    )
    wait_for_call("wait 1", working)
    frames = perdure("watch", "--timeout", "0.2", "--json").stdout.splitlines()
    told = json.loads(frames[0])
    assert (told["execution_id"], told["workflow"]) == ("1", "slow")
    assert [(step["name"], step["state"]) for step in told["steps"]] == [
        ("greet", "done"), ("wait", "running"), ("shout", "pending"),
    ]  # fmt: skip
    shown = perdure("watch", "--timeout", "0.2").stdout
    assert "slow/1  is running: 1 of 3 done; wait running" in shown
    Path("go").touch()
    working.communicate(timeout=60)
    assert "nothing is running" in perdure("watch", "--timeout", "0").stderr


@pytest.mark.usefixtures("folder")
def test_ctrl_c_ends_the_watching_and_nothing_else() -> None:
    perdure("run", write("greeting.json", GREETING), "--app", "steps.py", "--input", ANN)
    watching = start("watch")
    assert watching.stderr is not None
    assert "nothing is running" in watching.stderr.readline()
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=60)
    assert (out, err, watching.returncode) == ("", "perdure: interrupted\n", 130)


@pytest.mark.usefixtures("folder")
def test_watching_all_needs_a_database_that_is_there() -> None:
    assert "there is no database" in perdure("watch", code=5).output


def test_a_run_is_followed_by_whoever_has_only_the_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"

    async def main() -> None:
        async with Engine(url, [waiter]) as engine, Client(url) as other:
            await engine.start(waiter, id="1")
            looking = Running(other._store)
            [seen] = await looking.look()
            assert [step.state for step in seen.view.steps.values()] == ["waiting", "pending"]

    asyncio.run(main())
