"""crash_everywhere: a run of the user's own workflow, killed at every write and gone on with by
another process, comes out the same each time, and repeats only what may be repeated.

The effect of a step and its record are two things. A process that dies between them does the step
again, whatever engine it is; which steps bear that, the test says.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from perdure.codec.journal import decode_row
from perdure.flow.registry import Listed
from perdure.flow.step import Step
from perdure.model.definition import Definition
from perdure.model.errors import Failure, InvalidRequest, NotFound
from perdure.stores.rows import JournalRow, Message, NewRun
from perdure.testing.crashing import CrashingStore, When
from perdure.testing.engine import TestEngine
from perdure.testing.hand_clock import HandClock
from perdure.testing.script import Sent
from perdure.testing.stage import OwnStore

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741

ID: Final = "crash-everywhere"
#: Moves of the clock after which a run is taken for one without an end.
MOST_MOVES: Final = 2_000
_WHENS: Final[tuple[When, ...]] = ("before", "after")


class CrashReport(msgspec.Struct, frozen=True):
    """How it went. `points`: how many crashes there were; `repeated`: how often, over all of them,
    an attempt of a step was made once more, by the step's name."""

    points: int
    repeated: dict[str, int]


async def crash_everywhere(
    definition: Definition[I, O],
    input: I,
    /,
    *,
    script: Sequence[Sent[Any]] = (),
    fakes: Callable[[TestEngine], None] | None = None,
    may_repeat: Sequence[Step[..., Any] | str] = (),
    beside: Iterable[Listed] = (),
    resources: Iterable[object] = (),
) -> CrashReport:
    """Run it to its end; then again and again, each time killed at another write, before it and
    after it, and gone on with by a second engine.

    script: what it is sent, and when. fakes: called with each engine, to fake its steps; a step
    that is not faked does what it does, every time. may_repeat: the steps whose attempts may be
    made twice; functions of a saga by their names in full, as "checkout.charge" and
    "checkout.charge~undo". beside: what a graph calls. resources: what steps ask for by type.
    Raises AssertionError where a run comes out otherwise than without a crash, by its output or by
    its failure with all its details, or another step is repeated; InvalidRequest for a run without
    an end.
    """
    ordered, served = sorted(script, key=lambda one: one.at), [definition, *beside]
    play = _Play(definition, input, ordered, fakes, served, list(resources))
    allowed = {step if isinstance(step, str) else step.name for step in may_repeat}
    wanted = (await play.once(0, "before")).end
    points, repeated = 0, Counter[str]()
    for when in _WHENS:
        at = 1
        while (life := await play.once(at, when)).crash is not None:
            crash = f"killed {when} write {at} ({life.crash})"
            if life.end != wanted:
                raise AssertionError(f"{crash}, the run ends {life.end}, and else {wanted}")
            for step, times in life.repeated():
                if step not in allowed:
                    raise AssertionError(
                        f"{crash}, step {step} is done twice: let it look at "
                        "current_step().idempotency_key, and say may_repeat=[…] of it"
                    )
                repeated[step] += times
            points, at = points + 1, at + 1
    return CrashReport(points, dict(repeated))


class _Life(msgspec.Struct):
    """One run. `crash`: what was being written, or None; `done`: attempts made, by step."""

    end: str
    crash: str | None
    done: dict[str, Counter[tuple[str, str, str, int]]]

    def repeated(self) -> Iterator[tuple[str, int]]:
        """Steps that did an attempt more than once, and how often."""
        for step, places in self.done.items():
            times = sum(count - 1 for count in places.values())
            if times:
                yield step, times


class _Play:
    """What is run."""

    def __init__(
        self,
        definition: Definition[Any, Any],
        input: Any,
        script: Sequence[Sent[Any]],
        fakes: Callable[[TestEngine], None] | None,
        served: Sequence[Listed],
        resources: Sequence[object],
    ) -> None:
        self._definition = definition
        self._input = input
        self._script = script
        self._fakes = fakes
        self._served = served
        self._resources = resources

    async def once(self, at: int, when: When) -> _Life:
        """Run it, and crash at a write; 0 = none."""
        clock = HandClock()
        store = OwnStore(clock)
        crashing = CrashingStore(store, at, when)
        first = self._engine(clock, crashing, self._served)
        playing = asyncio.ensure_future(self._played(first, clock.now()))
        crashed = asyncio.ensure_future(crashing.crashed.wait())
        try:
            await asyncio.wait([playing, crashed], return_when=asyncio.FIRST_COMPLETED)
            if not crashing.crashed.is_set():
                return _Life(playing.result(), None, first._faked.done)
            playing.cancel()
            await asyncio.wait([playing])
        finally:
            crashed.cancel()
            await first._die()
        store.crash(first._shell.worker)
        # Also what the first one was asked for.
        second = self._engine(clock, store, [*self._served, *first._shell.served.own])
        try:
            end = await self._played(second, clock.begin)
        finally:
            await second._die()
        done = {step: Counter(places) for step, places in first._faked.done.items()}
        for step, places in second._faked.done.items():
            done.setdefault(step, Counter()).update(places)
        return _Life(end, _told(crashing.lost), done)

    def _engine(self, clock: HandClock, store: Any, served: Sequence[Listed]) -> TestEngine:
        engine = object.__new__(TestEngine)
        engine._begin(clock, store, served, self._resources)
        if self._fakes is not None:
            self._fakes(engine)
        return engine

    async def _played(self, engine: TestEngine, began: int) -> str:
        """How it ends, in words."""
        start: Any = engine.start
        given = () if self._input is None else (self._input,)
        run = await start(self._definition, *given, id=ID, if_exists="join")
        for n, sent in enumerate(self._script):
            await engine._until(began + sent.at)
            try:
                await run.signal(sent.to, sent.value, dedupe_key=f"script {n}")
            except NotFound:
                break  # it has ended
        for _ in range(MOST_MOVES):
            await engine.settle()
            info = await run.describe()
            due = engine._next_due()
            if info.stalled is not None:
                return f"stalled: {info.stalled}"
            if info.status != "running":
                return await _ended(run, info.status)
            if due is None:
                return "waiting for what never comes"
            await engine._move(due)
        raise InvalidRequest(
            f"{self._definition.name} does not end: crash_everywhere is for runs that do"
        )


async def _ended(run: Any, status: str) -> str:
    try:
        return f"{status} with {await run.result()!r}"
    except Failure as failure:
        return f"{status} with {failure.kind}: {failure}{_details(failure.details)}"


def _details(details: Any) -> str:
    """What a failure says beside its message: of a saga also what was undone, and what could not
    be. Not of which steps nobody knows what they did: whatever is killed leaves such steps."""
    if isinstance(details, dict) and "undone" in details:
        details = {name: value for name, value in details.items() if name != "unknown"}
    return f" {msgspec.json.encode(details, order='sorted').decode()}" if details else ""


def _told(lost: Sequence[Any]) -> str:
    """What was being written, in words."""
    words: list[str] = []
    for one in lost:
        if isinstance(one, NewRun):
            words.append(f"the start of {one.definition}/{one.id}")
        elif isinstance(one, JournalRow):
            words += [
                f"{type(action).__name__} {getattr(action, 'node', '')}".strip()
                for transition in decode_row(one.body)
                for action in transition.actions
            ]
        elif isinstance(one, list | tuple) and one and isinstance(one[0], Message):
            words.append(f"{one[0].kind} {one[0].name}".strip())
    return ", ".join(words) or "what keeps it"
