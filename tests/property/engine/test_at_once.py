"""Steps that begin at once, in the decision they follow from, are recorded, and see and give, as
those that do not: each random workflow is run once so and once the usual way, by the same clock and
with the same ids, and all that is written, seen, said and returned is the same."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.codec.journal import decode_row
from perdure.engine.ids import Ids
from perdure.engine.runs.at_once import AtOnce
from perdure.flow.workflow import Workflow
from perdure.kernel.events import NodeCompleted
from perdure.kernel.onward import Decided
from perdure.model.errors import PerdureError, StoreError
from perdure.stores.answers import CommitDone
from perdure.stores.rows import JournalRow
from tests.property.engine import chains
from tests.property.engine.chains import do, in_a_thread, other, programs, undo, workflow_of
from tests.virtual.engines import engine_on
from tests.virtual.loop import VirtualClock, run
from tests.virtual.stores import LateStore, PromptStore, VirtualStore

EXAMPLES: Final = 300
#: What a store does to a batch instead of writing it at once.
TROUBLES: Final = ("busy", "late", "away", "away and written")
Trouble = dict[int, str]


class Troubled(VirtualStore):
    """Writes at once, but for the batches named in `trouble`, by their places."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self.trouble = trouble
        self._count = itertools.count()

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        what = self.trouble.get(next(self._count))
        if what == "busy":
            done(["busy"] * len(rows))
        elif what == "late":
            asyncio.get_running_loop().call_later(0.01, super().commit, rows, done)
        elif what is not None:
            if what == "away and written":
                super().commit(rows, lambda _: None)
            done(StoreError("the disk is away"))
        else:
            super().commit(rows, done)


class OneClock(VirtualClock):
    """Of the loop that it is made in, also where a workflow's asks."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.get_running_loop()

    def now(self) -> int:
        return self.begin + round(self.loop.time() * 1_000_000)


class NoThreads:
    """The calls of `def` steps, made where they are ordered: threads know no virtual time."""

    full: Final = False

    def __init__(self, most: int) -> None:
        pass

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(call())
        return future

    def close(self) -> None:
        pass


Rows = list[JournalRow]


class Told(msgspec.Struct):
    """Of one engine with one workflow: every row of every run, what code saw, in order, what was
    logged, and how the workflow ended."""

    rows: list[Rows]
    seen: list[Any]
    said: list[str]
    end: Any


class _Said(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextmanager
def listening() -> Iterator[list[str]]:
    """What the engine logs, and nobody else hears."""
    logger, said = logging.getLogger("perdure"), _Said()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(said)
    try:
        yield said.texts
    finally:
        logger.removeHandler(said)
        logger.propagate = before


async def tell(started: Any, events: list[tuple[float, str]]) -> None:
    """What comes from outside, each so long after the one before."""
    for seconds, what in events:
        await asyncio.sleep(seconds)
        try:
            if what == "signal":
                await started.signal(chains.NEWS, 9)
            else:
                await getattr(started, what)()
        except PerdureError as error:
            chains.scene.seen.append([what, type(error).__name__])


def played(
    definition: Workflow[Any, Any], store: VirtualStore, events: list[tuple[float, str]]
) -> Told:
    scene = chains.scene = chains.Scene()
    random.seed(1)
    chance = itertools.count(1)

    async def main() -> Any:
        chains.VAR.set("the engine's")
        engine = scene.engine = engine_on(
            store, definition, other, do, undo, in_a_thread, clock=OneClock, poll=0.5
        )
        async with engine:
            chains.VAR.set("nobody's any more")
            started = await engine.start(definition, id="1")
            telling = asyncio.create_task(tell(started, [*events, (60, "unpause")]))
            try:
                end: Any = await started.result(timeout=3 * 3600)
            except PerdureError as error:
                end = f"{type(error).__name__}: {error}"
            await telling
            await asyncio.gather(*scene.left)
            await asyncio.sleep(10)
            assert not engine._shell.live
        return end

    def drawn(self: Ids) -> int:
        return next(chance) << 20

    # What code leaves behind (a generator, in a traceback) is collected when this is over.
    gc.disable()
    try:
        with listening() as said, mock.patch.object(Ids, "_drawn", drawn):
            end = run(main())
    finally:
        gc.enable()
    rows = [[made.journal[seq] for seq in sorted(made.journal)] for made in store._runs.values()]
    return Told(rows, scene.seen, said, end)


#: How many steps began at once, and how they went on; and what was recorded.
made_at_once: Counter[str] = Counter()
recorded: Counter[str] = Counter()
_attempt = AtOnce.attempt


def counting(self: AtOnce, *args: Any) -> Any:
    made = _attempt(self, *args)
    made_at_once["completed" if type(made) is NodeCompleted else str(made)] += 1
    return made


def refusing(self: AtOnce, *args: Any) -> Any:
    return False


def _numberless(row: JournalRow) -> JournalRow:
    """Without the number of its try: one row less of another run has all others count otherwise."""
    return msgspec.structs.replace(row, commit=0)


def _decided(rows: Rows) -> Iterator[Decided]:
    return itertools.chain.from_iterable(decode_row(row.body) for row in rows)


def _ended(rows: Rows) -> Iterator[int]:
    """How many steps have ended by each row of those by which some have."""
    for row in rows:
        count = row.body.count(b'"CompleteTask"') + row.body.count(b'"FailTask"')
        if count:
            yield count


STORES = st.one_of(
    st.just(VirtualStore),
    st.just(PromptStore),
    st.just(LateStore),
    st.dictionaries(st.integers(0, 30), st.sampled_from(TROUBLES), max_size=3).map(
        lambda trouble: lambda: Troubled(trouble)
    ),
)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0, 0.0005, 0.5, 1.5, 5]),
        st.sampled_from(["signal", "signal", "pause", "unpause", "cancel"]),
    ),
    max_size=4,
)


@settings(max_examples=EXAMPLES)
@given(ops=programs(), store=STORES, events=EVENTS)
def both_ways(ops: Any, store: Callable[[], VirtualStore], events: Any) -> None:
    with mock.patch("perdure.engine.handlers.task.Threads", NoThreads):
        with mock.patch.object(AtOnce, "attempt", refusing):
            usual = played(workflow_of(ops), store(), events)
        with mock.patch.object(AtOnce, "attempt", counting):
            made = played(workflow_of(ops), store(), events)
    for row in itertools.chain.from_iterable(usual.rows):
        recorded.update(re.findall(r'"do":"(\w+)"', row.body.decode()))
    assert made.end == usual.end
    assert made.seen == usual.seen
    assert len(made.rows) == len(usual.rows)
    for ours, theirs in zip(made.rows, usual.rows, strict=True):
        if len(ours) == len(theirs):
            assert list(map(_numberless, ours)) == list(map(_numberless, theirs))
        else:
            # Messages that came while one step was made are decided together.
            assert list(_decided(ours)) == list(_decided(theirs))
            assert list(_ended(ours)) == list(_ended(theirs))
    assert made.said == usual.said


#: A generator of a run that was dropped is closed by the collector: it may ask for steps, in vain.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_all_is_as_if_each_step_went_the_usual_way() -> None:
    made_at_once.clear()
    both_ways()
    assert made_at_once["completed"] >= 2 * EXAMPLES
    assert made_at_once["True"] > EXAMPLES / 10, "steps that wait, fail, or meet a message"
    wanted = {"BufferSignal", "ConsumeSignal", "RetryTask", "FailTask", "StartChild"}
    wanted |= {"SetPaused", "RequestStop", "CancelTasks", "ResolveWait", "FinishRun"}
    assert [kind for kind in wanted if recorded[kind] < 20] == []
