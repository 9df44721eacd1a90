"""Programs of things that are done in sagas and may be taken back, and the world that they are done
in: it knows what stands, whatever the run believes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from msgspec import json

from perdure import step
from perdure.flow.context import Context
from perdure.flow.undoing import Undo
from perdure.flow.workflow import Workflow, workflow
from perdure.kernel.actions import CreateTask
from perdure.kernel.run import GRACE
from perdure.model.errors import Failure
from tests.unit.kernel.code.board import Board

Op = tuple[Any, ...]


@step
async def do(thing: int) -> int:
    return thing


@step
async def take_back(thing: int) -> int:
    return thing


@step
async def note(thing: int) -> int:
    return thing


def programs() -> st.SearchStrategy[list[Op]]:
    """A few operations, of which the things done have numbers of their own."""
    leaves = st.sampled_from([("do",), ("do",), ("note",)])
    return st.lists(_operations(_operations(leaves)), min_size=1, max_size=4).map(numbered)


def sequences() -> st.SearchStrategy[list[Op]]:
    """One thing after another, in one saga at a time: what stands is never done again."""
    leaves = st.sampled_from([("do",), ("do",), ("note",)])
    few = st.lists(leaves, min_size=1, max_size=2)
    ops = st.one_of(leaves, st.tuples(st.sampled_from(["saga", "try"]), few))
    return st.lists(ops, min_size=2, max_size=4).map(numbered)


def _operations(inner: st.SearchStrategy[Op]) -> st.SearchStrategy[Op]:
    few = st.lists(inner, min_size=1, max_size=3)
    kinds = st.sampled_from(["saga", "saga", "try"])
    both = st.tuples(st.just("both"), st.lists(inner, min_size=2, max_size=2))
    return st.one_of(inner, st.tuples(kinds, few), st.tuples(kinds, few), both)


def numbered(ops: list[Op], numbers: Iterator[int] | None = None) -> list[Op]:
    """The same, with a number for each leaf."""
    numbers = iter(range(1, 99)) if numbers is None else numbers
    return [
        (kind, next(numbers)) if not inner else (kind, numbered(inner[0], numbers))
        for kind, *inner in ops
    ]


class Player:
    """Runs a program. `counted`: the things that are done, as far as the code knows."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.counted: list[int] = []

    async def all(self, ops: list[Op], saga: Undo | None) -> None:
        for kind, what in ops:
            await getattr(self, f"_{kind}")(what, saga)

    async def _do(self, thing: int, saga: Undo | None) -> None:
        if saga is None:
            await do(thing)
        else:
            await saga.run(do, thing, undo=take_back)
        self.counted.append(thing)

    async def _note(self, thing: int, saga: Undo | None) -> None:
        await note(thing)

    async def _saga(self, ops: list[Op], saga: Undo | None) -> None:
        before = list(self.counted)
        try:
            async with self.ctx.saga() as inner:
                await self.all(ops, inner)
        except BaseException:
            # What another branch did meanwhile is not known from here: it counts no more, either.
            self.counted = before
            raise

    async def _try(self, ops: list[Op], saga: Undo | None) -> None:
        try:
            await self.all(ops, saga)
        except Failure:
            await note(0)

    async def _both(self, ops: list[Op], saga: Undo | None) -> None:
        await asyncio.gather(*(self.all([op], saga) for op in ops))


def workflow_of(ops: list[Op]) -> Workflow[Any, Any]:
    """A workflow that gives what it counts as done."""

    @workflow(max_duration="30d", name="takings")
    async def play(ctx: Context) -> list[int]:
        player = Player(ctx)
        await player.all(ops, None)
        return player.counted

    return play


class World:
    """What stands of a run's doings. `stuck`: what could not be taken back, or nobody knows."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.stands: Counter[int] = Counter()
        self.stuck: set[int] = set()

    def thing(self, node: str) -> int:
        """What a call does, or takes back."""
        task = self.board.run.nodes[node].task
        for transition in self.board.journal:
            for action in transition.actions:
                if isinstance(action, CreateTask) and action.task == task:
                    assert action.input is not None
                    return int(json.decode(action.input))
        raise AssertionError(f"{node} was never made")

    def complete(self, node: str) -> None:
        """A call has done what it is for."""
        thing = self.thing(node)
        if node.startswith("do"):
            assert thing not in self.stuck, f"{thing} is done again and was not taken back"
            self.stands[thing] += 1
        elif node.startswith("take-back"):
            self.stands[thing] -= 1
            self.stuck.discard(thing)
        self.board.complete(node, thing)

    def fail(self, node: str) -> None:
        """A call has done nothing."""
        if node.startswith("take-back"):
            self.stuck.add(self.thing(node))
        self.board.fail(node, permanent=True)

    def fire(self) -> None:
        """The next timer: the time to clean up is over, and what is under way is let go of."""
        for node in self.board.pending:
            if node.startswith("take-back"):
                self.stuck.add(self.thing(node))
        self.board.fire(GRACE)
