"""The same random operations on memory and on SQLite: equal answers, equal runs afterwards.

Memory is the model. Both clocks are held at one counted time, so that every answer is comparable
to the last bit. Operations prefer few runs, rows and workers, so that they meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
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

from perdure.conformance.rows import (
    BORN,
    commit,
    definition,
    key,
    message,
    new,
    row,
    start,
    worker,
)
from perdure.model.errors import InvalidRequest, NotFound, RunActive, StoreError
from perdure.stores.answers import Claim
from perdure.stores.port import LEASE, PURGE_AFTER, RunQuery
from perdure.stores.rows import (
    NEVER,
    ChildCancel,
    ChildStart,
    Continue,
    Finish,
    JournalRow,
    Message,
    NewRun,
    Park,
    Release,
    Reopen,
    Stall,
    StoredDefinition,
)
from tests.conformance.store.places import MemorySuite, SqliteSuite

RUNS = st.integers(0, 5)
WORKERS = st.sampled_from(["w0", "w1", "w2"])
DEFINITIONS = ["a", "b"]
TIMES = st.integers(0, 60)
#: Runs that are there from the beginning, one that may be, one that never is.
ADDRESSES = st.sampled_from(
    [("a", "run-0"), ("b", "run-1"), ("a", "run-2"), ("b", "run-4"), ("a", "x"), ("b", "nobody")]
)
BYTES = st.sampled_from([b"", b"{}", b"x" * 5000])
#: What may ride on a run's first row.
FIRST_CHANGES = st.one_of(
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
    st.builds(Stall, reason=st.text(max_size=3), until=TIMES | st.just(NEVER)),
)
CHANGES = FIRST_CHANGES | st.builds(
    Reopen,
    version=st.just("2"),
    hash=st.just("h2"),
    ready_at=TIMES,
    deadline=st.none() | TIMES,
) | st.builds(Continue, deadline=st.none() | TIMES)  # fmt: skip
PAYLOADS = st.lists(BYTES, max_size=2)


@st.composite
def outgoing(draw: st.DrawFn) -> Any:
    """Something that a row says to another run. Tasks and runs are few, so that calls meet."""
    task = draw(st.sampled_from(["t", "u", "v"]))
    kind = draw(st.sampled_from(["start", "start", "cancel", "post"]))
    if kind == "cancel":
        return ChildCancel(task, "enough")
    definition, id = draw(ADDRESSES)
    if kind == "post":
        return Message(definition, id, draw(st.sampled_from("pq")), "signal")
    made = draw(st.none() | starts().map(lambda run: renamed(run, definition, id)))
    known = None if made is None else definition_of(made)
    return ChildStart(task, "n", (definition, id), made, known, b"{}", draw(st.booleans()))


def renamed(run: NewRun, definition: str, id: str) -> NewRun:
    """It under this name, and a key that no other run has."""
    n = 100 + int(run.created - BORN) * 10 + len(definition + id)
    first = msgspec.structs.replace(run.first, run=key(n))
    return msgspec.structs.replace(run, key=key(n), first=first, definition=definition, id=id)


def definition_of(run: NewRun) -> StoredDefinition:
    return StoredDefinition("p", run.definition, "1", "graph", b"{}", BORN)


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
        outgoing=draw(st.just(()) | st.lists(outgoing(), max_size=2)),
    )


@st.composite
def starts(draw: st.DrawFn) -> NewRun:
    n = draw(RUNS)
    first = row(n, 1, writer=draw(WORKERS), payloads=draw(PAYLOADS), change=draw(FIRST_CHANGES))
    return new(
        n,
        definition=draw(st.sampled_from(DEFINITIONS)),
        id=draw(st.sampled_from(["x", "y", "run-0"])),
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
        self.loop = asyncio.new_event_loop()
        self.beds = (MemorySuite(), SqliteSuite())
        for bed in self.beds:
            bed.begin()
        self.stores: list[Any] = []
        self.clock = 0
        self.registered = 0
        self.alive: list[str] = []
        self.claims: list[Claim] = []
        self.open()

    def open(self) -> None:
        self.stores = [bed.make() for bed in self.beds]
        for store in self.stores:
            store.now = lambda: self.clock
            self.loop.run_until_complete(store.open())

    def both(self, name: str, ask: Any) -> Any:
        """Ask both stores; the answers are equal. Notes what kinds of answers there were."""
        answers = [self.loop.run_until_complete(self.ask(ask(store))) for store in self.stores]
        assert answers[1] == answers[0]
        for answer in answers[0] if isinstance(answers[0], list) else [answers[0]]:
            kind = answer if isinstance(answer, str) else bool(answer)
            for said in ("outcome", "alive"):
                kind = getattr(answer, said, kind)
            self.seen.add((name, str(kind)))
        return answers[0]

    @staticmethod
    async def ask(asked: Coroutine[Any, Any, Any]) -> Any:
        try:
            answer = await asked
        except (StoreError, NotFound, RunActive) as error:
            return type(error).__name__
        return list(answer) if isinstance(answer, tuple) else answer

    @initialize()
    def begin(self) -> None:
        """A worker, and runs in five situations, so that operations meet something."""
        self.register()
        owned = new(0, definition="a", owner="r0", first=row(0, 1, payloads=[b"big"]))
        lost = new(1, definition="b", owner="gone")
        due = new(2, definition="a", ready_at=0)
        stuck = new(3, definition="a", first=row(3, 1, change=Stall("stuck")))
        done = row(4, 1, writer="r0", at=0, change=Finish("failed", 0))
        ended = new(4, definition="b", owner="r0", first=done)
        self.both("start", lambda store: start(store, owned, lost, due, stuck, ended))

    @rule(batch=st.lists(rows(), max_size=5).map(one_of_each_run))
    def commit(self, batch: list[JournalRow]) -> None:
        self.both("commit", lambda store: commit(store, *batch))

    @rule(batch=st.lists(starts(), min_size=1, max_size=4))
    def start(self, batch: list[NewRun]) -> None:
        self.both("start", lambda store: start(store, *batch))

    @rule(
        n=RUNS, change=CHANGES, payloads=PAYLOADS, said=st.lists(outgoing(), max_size=2),
        unanswered=st.booleans(),
    )  # fmt: skip
    def the_owner_goes_on(
        self, n: int, change: Any, payloads: list[bytes], said: list[Any], unanswered: bool
    ) -> None:
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
            outgoing=said,
        )
        self.both("commit", lambda store: commit(store, goes_on))
        if unanswered:  # it is sent once more, byte for byte
            self.both("commit", lambda store: commit(store, goes_on))
        refs = [(goes_on.seq, at) for at in range(len(payloads))]
        self.both("payloads", lambda store: store.payloads(key(n), refs))

    @rule(
        data=st.data(),
        posts=st.lists(
            st.tuples(
                ADDRESSES,
                st.sampled_from("pqrs"),
                st.sampled_from(["signal", "cancel", "pause", "unpause"]),
                st.none() | BYTES,
            ),
            max_size=3,
        ),
    )
    def post(self, data: Any, posts: list[Any]) -> None:
        messages = [
            msgspec.structs.replace(
                message(0, id, kind=kind, body=body), definition=definition, run_id=run
            )
            for (definition, run), id, kind, body in posts
        ]
        posted = self.both("post", lambda store: store.post(messages))
        for one in posted:
            self.both("mail", lambda store, key=one.key: store.mail(key, 0))

    @rule(n=RUNS, after=st.integers(-1, 4))
    def mail(self, n: int, after: int) -> None:
        self.both("mail", lambda store: store.mail(key(n), after))

    @rule(n=RUNS, stale=st.integers(0, 3), ready_at=TIMES)
    def the_owner_parks(self, n: int, stale: int, ready_at: int) -> None:
        """Mostly as an owner does; now and then an epoch or a message late, or not the owner."""
        loaded = self.both("load", lambda store: store.load(key(n)))
        if isinstance(loaded, str):
            return
        owner = loaded.run.owner or "nobody"
        epoch = loaded.run.epoch - (stale == 1)
        read = max(loaded.journal[-1].read, 0) - (stale == 2)
        park = Park(key(n), epoch, read, ready_at)
        self.both("park", lambda store: store.park(owner, [park, park]))

    @rule(n=RUNS)
    def the_owner_reads(self, n: int) -> None:
        """A row that says that all mail is read."""
        loaded = self.both("load", lambda store: store.load(key(n)))
        if isinstance(loaded, str) or loaded.run.owner is None:
            return
        seq, run = loaded.journal[-1].seq + 1, loaded.run
        reads = row(n, seq, writer=run.owner, epoch=run.epoch, read=run.mail)
        self.both("commit", lambda store: commit(store, reads))

    @rule(n=RUNS, change=CHANGES)
    def retry(self, n: int, change: Any) -> None:
        loaded = self.both("load", lambda store: store.load(key(n)))
        if isinstance(loaded, str):
            return
        run, me = loaded.run, self.alive[0]
        claim = self.both(
            "claim_finished", lambda store: store.claim_finished(me, run.definition, run.id)
        )
        if isinstance(claim, str):
            return
        self.claims.append(claim)
        self.both(
            "claim_finished", lambda store: store.claim_finished("w0", run.definition, run.id)
        )
        again = row(n, loaded.journal[-1].seq + 1, writer=me, epoch=claim.epoch, change=change)
        self.both("retry", lambda store: commit(store, again))
        self.both("retry", lambda store: commit(store, again))

    @rule(data=st.data())
    def beat(self, data: Any) -> None:
        who = data.draw(st.sampled_from([*self.alive, "w0"]))
        self.both("beat", lambda store: store.beat(who))

    @rule(data=st.data())
    def sweep(self, data: Any) -> None:
        who = data.draw(st.sampled_from(self.alive))
        self.both("sweep", lambda store: store.sweep(who))
        self.both("workers", self.living)

    @staticmethod
    async def living(store: Any) -> list[str]:
        """The dead are shown for as long as a store notices no death by itself."""
        return sorted(seen.info.id for seen in await store.workers() if seen.alive)

    @rule(limit=st.integers(0, 3), late=st.booleans())
    def purge(self, limit: int, late: bool) -> None:
        self.clock += PURGE_AFTER * late  # what has ended is old enough then
        self.both("purge", lambda store: store.purge(limit))

    @rule(names=st.lists(st.sampled_from(DEFINITIONS), max_size=2), limit=st.integers(0, 3))
    def claim(self, names: list[str], limit: int) -> None:
        self.claims += self.both(
            "claim", lambda store: store.claim_runs(self.alive[0], names, limit)
        )

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), stalled=st.none() | st.text(max_size=3), until=TIMES | st.just(NEVER))
    def give_back(self, data: Any, stalled: str | None, until: int) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        self.both("give_back", lambda store: store.give_back(self.alive[0], claim, stalled, until))

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
        for bed, store in zip(self.beds, self.stores, strict=True):
            bed.kill(store, dead)

    @precondition(lambda self: len(self.alive) > 1)
    @rule(data=st.data())
    def leave(self, data: Any) -> None:
        gone = data.draw(st.sampled_from(self.alive))
        self.alive.remove(gone)
        self.both("unregister", lambda store: store.unregister(gone))

    @rule()
    def restart(self) -> None:
        """Everybody dies; the next registration finds out."""
        for bed, store in zip(self.beds, self.stores, strict=True):
            for id in self.alive:
                bed.kill(store, id)
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

    @rule(
        hash=st.sampled_from("pqr"), version=st.sampled_from("12"), relabel=st.booleans(),
        created=TIMES,
    )  # fmt: skip
    def publish(self, hash: str, version: str, relabel: bool, created: int) -> None:
        one = definition(hash, created=created, version=version)
        self.both("publish", lambda store: self.published(store, one, relabel))
        self.both("definitions", lambda store: store.definitions())

    @staticmethod
    async def published(store: Any, one: StoredDefinition, relabel: bool) -> Any:
        try:
            await store.publish(one, relabel=relabel)
        except InvalidRequest as error:
            return "refused", str(error)  # in the same words
        return ("published",)

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

    @rule(passes=st.integers(1, 30) | st.sampled_from([LEASE // 2, LEASE, PURGE_AFTER]))
    def time_passes(self, passes: int) -> None:
        self.clock += passes

    @invariant()
    def both_show_the_same_runs(self) -> None:
        self.both("find", lambda store: store.find(RunQuery()))

    @rule()
    def both_hold_the_same_rows_and_mail(self) -> None:
        for n in range(6):
            self.both("mail", lambda store, n=n: store.mail(key(n), 0))
            self.both("load", lambda store, n=n: store.load(key(n)))
        self.both("mailed", lambda store: store.mailed(self.alive[0]))

    def teardown(self) -> None:
        self.both_hold_the_same_rows_and_mail()
        for store in self.stores:
            self.loop.run_until_complete(store.close())
        self.loop.close()
        for bed in self.beds:
            bed.end()


def explore(examples: int) -> set[tuple[str, str]]:
    """Run the machine; the kinds of answers that occurred."""
    seen: set[tuple[str, str]] = set()
    machine = type("Stores", (Stores,), {"seen": seen})
    # Where Hypothesis notices a CI it repeats one and the same choice: no round would be new.
    how = settings(settings(), max_examples=examples, stateful_step_count=40, derandomize=False)
    run_state_machine_as_test(machine, settings=how)
    return seen


#: So many rounds are played in any case: together the examples of the profile.
ROUNDS = 3
#: After so many an answer that never occurred is said to be out of reach.
ENOUGH = 30


@pytest.mark.slow
def test_memory_and_sqlite_answer_alike_in_every_kind_of_answer() -> None:
    """Goes on until every operation has succeeded and has been refused at least once."""
    expected = {
        *(("commit", verdict) for verdict in ("accepted", "mine", "refused")),
        *(("start", outcome) for outcome in ("created", "exists", "mine")),
        *(("register", str(freed)) for freed in (True, False)),
        *(("load", kind) for kind in ("True", "NotFound")),
        *(("payloads", kind) for kind in ("True", "PayloadMissing")),
        *(("define", kind) for kind in ("True", "NotFound")),
        *(("post", said) for said in ("posted", "duplicate", "finished", "missing")),
        *(("park", str(parked)) for parked in (True, False)),
        *(("beat", str(alive)) for alive in (True, False)),
        ("workers", "r0"),
        *(("sweep", str(freed)) for freed in (True, False)),
        *(("claim_finished", kind) for kind in ("True", "RunActive", "StoreError")),
        *(("retry", verdict) for verdict in ("accepted", "refused")),
        *(("purge", str(gone)) for gone in (True, False)),
        *(("mailed", str(some)) for some in (True, False)),
        *(("publish", said) for said in ("published", "refused")),
        ("mail", "True"),
        ("claim", "True"),
        ("unstall", "True"),
        ("find", "True"),
        ("unregister", "False"),
    }
    seen: set[tuple[str, str]] = set()
    for played in range(1, ENOUGH + 1):
        seen |= explore(settings().max_examples // ROUNDS)
        if played >= ROUNDS and expected <= seen:
            break
    assert expected - seen == set()
