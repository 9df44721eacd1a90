"""The same random operations on memory and on SQLite: equal answers, equal runs afterwards.

Memory is the model. Both clocks are held at one counted time, so that every answer is comparable
to the last bit. Operations prefer few runs, rows and workers, so that they meet.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from perdure.model.errors import NotFound, StoreError
from perdure.stores.port import Claim, Finish, JournalRow, NewRun, Release, RunQuery, Stall
from tests.conformance.store.kit import (
    BORN,
    MemoryCase,
    SqliteCase,
    commit,
    definition,
    key,
    new,
    row,
    start,
    worker,
)

RUNS = st.integers(0, 5)
WORKERS = st.sampled_from(["w0", "w1", "w2"])
DEFINITIONS = ["a", "b"]
TIMES = st.integers(0, 60)
BYTES = st.sampled_from([b"", b"{}", b"x" * 5000])
CHANGES = st.one_of(
    st.none(),
    st.builds(
        Finish,
        status=st.sampled_from(["completed", "failed", "canceled"]),
        purge_at=TIMES,
        output=st.none() | BYTES,
        failure=st.none() | BYTES,
    ),
    st.builds(Finish, status=st.just("completed"), purge_at=TIMES, output_ref=st.integers(0, 1)),
    st.builds(Release, ready_at=TIMES),
    st.builds(Stall, reason=st.text(max_size=3)),
)
PAYLOADS = st.lists(BYTES, max_size=2)


@st.composite
def rows(draw: st.DrawFn) -> JournalRow:
    return row(
        draw(RUNS),
        draw(st.integers(1, 5)),
        writer=draw(WORKERS),
        commit=draw(st.integers(1, 2)),
        at=draw(TIMES),
        epoch=draw(st.integers(0, 3)),
        read=draw(st.integers(0, 3)),
        payloads=draw(PAYLOADS),
        change=draw(CHANGES),
    )


@st.composite
def starts(draw: st.DrawFn) -> NewRun:
    n = draw(RUNS)
    first = row(n, 1, writer=draw(WORKERS), payloads=draw(PAYLOADS), change=draw(CHANGES))
    return new(
        n,
        definition=draw(st.sampled_from(DEFINITIONS)),
        id=draw(st.sampled_from("xyz")),
        owner=draw(st.none() | WORKERS),
        ready_at=draw(TIMES),
        created=BORN + draw(st.integers(0, 3)),
        deadline=draw(st.none() | TIMES),
        first=first,
    )


def one_of_each_run(batch: list[JournalRow]) -> list[JournalRow]:
    return list({r.run: r for r in batch}.values())


class Stores(RuleBasedStateMachine):
    """Both stores, asked the same."""

    seen: set[tuple[str, str]]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.cases = (MemoryCase(self.folder), SqliteCase(self.folder))
        self.stores: list[Any] = []
        self.clock = 0
        self.registered = 0
        self.alive: list[str] = []
        self.claims: list[Claim] = []
        self.open()

    def open(self) -> None:
        self.stores = [case.make() for case in self.cases]
        for store in self.stores:
            store.now = lambda: self.clock
            self.loop.run_until_complete(store.open())

    def both(self, name: str, ask: Any) -> Any:
        """Ask both stores; the answers are equal. Notes what kinds of answers there were."""
        answers = [self.loop.run_until_complete(self.ask(ask(store))) for store in self.stores]
        assert answers[1] == answers[0]
        for answer in answers[0] if isinstance(answers[0], list) else [answers[0]]:
            kind = getattr(answer, "outcome", answer if isinstance(answer, str) else bool(answer))
            self.seen.add((name, str(kind)))
        return answers[0]

    @staticmethod
    async def ask(asked: Coroutine[Any, Any, Any]) -> Any:
        try:
            answer = await asked
        except (StoreError, NotFound) as error:
            return type(error).__name__
        return list(answer) if isinstance(answer, tuple) else answer

    @initialize()
    def begin(self) -> None:
        """A worker, and runs in four situations, so that operations meet something."""
        self.register()
        owned = new(0, definition="a", owner="r0", first=row(0, 1, payloads=[b"big"]))
        lost = new(1, definition="b", owner="gone")
        due = new(2, definition="a", ready_at=0)
        stuck = new(3, definition="a", first=row(3, 1, change=Stall("stuck")))
        self.both("start", lambda store: start(store, owned, lost, due, stuck))

    @rule(batch=st.lists(rows(), max_size=5).map(one_of_each_run))
    def commit(self, batch: list[JournalRow]) -> None:
        self.both("commit", lambda store: commit(store, *batch))

    @rule(batch=st.lists(starts(), max_size=4))
    def start(self, batch: list[NewRun]) -> None:
        self.both("start", lambda store: start(store, *batch))

    @rule(data=st.data(), n=RUNS, change=CHANGES, payloads=PAYLOADS)
    def the_owner_goes_on(self, data: Any, n: int, change: Any, payloads: list[bytes]) -> None:
        """A row as a live owner writes it, which random rows seldom are."""
        loaded = self.both("load", lambda store: store.load(key(n)))
        if isinstance(loaded, str) or loaded.run.owner is None:
            return
        goes_on = row(
            n,
            loaded.journal[-1].seq + 1,
            writer=loaded.run.owner,
            epoch=loaded.run.epoch,
            payloads=payloads,
            change=change,
        )
        self.both("commit", lambda store: commit(store, goes_on))
        refs = [(goes_on.seq, at) for at in range(len(payloads))]
        self.both("payloads", lambda store: store.payloads(key(n), refs))

    @rule(names=st.lists(st.sampled_from(DEFINITIONS), max_size=2), limit=st.integers(0, 3))
    def claim(self, names: list[str], limit: int) -> None:
        self.claims += self.both(
            "claim", lambda store: store.claim_runs(self.alive[0], names, limit)
        )

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), stalled=st.none() | st.text(max_size=3))
    def give_back(self, data: Any, stalled: str | None) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        self.both("give_back", lambda store: store.give_back(self.alive[0], claim, stalled))

    @rule(names=st.lists(st.sampled_from(DEFINITIONS), max_size=2))
    def unstall(self, names: list[str]) -> None:
        self.both("unstall", lambda store: store.unstall(names))

    @rule()
    def register(self) -> None:
        id = f"r{self.registered}"
        self.registered += 1
        self.both("register", lambda store: store.register(worker(id)))
        self.alive.append(id)

    @precondition(lambda self: len(self.alive) > 1)
    @rule(data=st.data())
    def die(self, data: Any) -> None:
        dead = data.draw(st.sampled_from(self.alive))
        self.alive.remove(dead)
        for case, store in zip(self.cases, self.stores, strict=True):
            case.kill(store, dead)

    @precondition(lambda self: len(self.alive) > 1)
    @rule(data=st.data())
    def leave(self, data: Any) -> None:
        gone = data.draw(st.sampled_from(self.alive))
        self.alive.remove(gone)
        self.both("unregister", lambda store: store.unregister(gone))

    @rule()
    def restart(self) -> None:
        """Everybody dies; the next registration finds out."""
        for case, store in zip(self.cases, self.stores, strict=True):
            for id in self.alive:
                case.kill(store, id)
            self.loop.run_until_complete(store.close())
        self.alive.clear()
        self.open()
        self.register()

    @rule(hash=st.sampled_from("pq"), source=BYTES)
    def define(self, hash: str, source: bytes) -> None:
        self.both("define", lambda store: self.defined(store, hash, source))

    @staticmethod
    async def defined(store: Any, hash: str, source: bytes) -> Any:
        before = await Stores.ask(store.definition(hash))
        await store.define(definition(hash, source))
        return [before, await store.definition(hash)]

    @rule(n=RUNS, refs=st.lists(st.tuples(st.integers(1, 2), st.integers(0, 1)), max_size=2))
    def payloads(self, n: int, refs: list[tuple[int, int]]) -> None:
        self.both("payloads", lambda store: store.payloads(key(n), refs))

    @rule(
        name=st.none() | st.sampled_from(DEFINITIONS),
        status=st.sampled_from([(), ("running",), ("failed", "completed")]),
        before=st.none() | RUNS.map(key),
        after=st.none() | st.integers(BORN, BORN + 3),
        limit=st.integers(0, 4),
    )
    def find(self, name: Any, status: Any, before: Any, after: Any, limit: int) -> None:
        query = RunQuery(name, status, after, before, limit)
        self.both("find", lambda store: store.find(query))

    @rule(passes=st.integers(1, 30))
    def time_passes(self, passes: int) -> None:
        self.clock += passes

    @invariant()
    def both_hold_the_same_runs(self) -> None:
        for n in range(6):
            self.both("load", lambda store, n=n: store.load(key(n)))

    def teardown(self) -> None:
        for store in self.stores:
            self.loop.run_until_complete(store.close())
        self.loop.close()
        shutil.rmtree(self.folder)


def explore(examples: int) -> set[tuple[str, str]]:
    """Run the machine; the kinds of answers that occurred."""
    seen: set[tuple[str, str]] = set()
    machine = type("Stores", (Stores,), {"seen": seen})
    # Where Hypothesis notices a CI it repeats one and the same choice: no round would be new.
    how = settings(settings(), max_examples=examples, stateful_step_count=40, derandomize=False)
    run_state_machine_as_test(machine, settings=how)
    return seen


#: Rounds after which an answer that never occurred is said to be out of reach.
ROUNDS = 12


@pytest.mark.slow
def test_memory_and_sqlite_answer_alike_in_every_kind_of_answer() -> None:
    """Goes on until every operation has succeeded and has been refused at least once."""
    expected = {
        *(("commit", verdict) for verdict in ("accepted", "mine", "refused")),
        *(("start", outcome) for outcome in ("created", "exists", "mine")),
        *(("register", str(freed)) for freed in (True, False)),
        *(("load", kind) for kind in ("True", "NotFound")),
        *(("payloads", kind) for kind in ("True", "StoreError")),
        *(("define", kind) for kind in ("True", "NotFound")),
        ("claim", "True"),
        ("unstall", "True"),
        ("find", "True"),
        ("unregister", "False"),
    }
    seen: set[tuple[str, str]] = set()
    for _ in range(ROUNDS):
        seen |= explore(settings().max_examples // 3)
        if expected <= seen:
            break
    assert expected - seen == set()
