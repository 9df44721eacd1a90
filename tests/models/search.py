"""Breadth first over every state that can be reached, the shortest way to each kind of fault.

Two kinds of checks: what must hold in every state, and that from every state on, once nothing
fails any more and everybody does its share, all mail is read and the run rests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.models.fence import (
    BEGIN,
    WORKERS,
    Budget,
    Row,
    Rules,
    State,
    arriving,
    claiming,
    committing,
    parking,
    posting,
    reconciling,
    steps,
)


class Found(NamedTuple):
    """`faults`: kind -> what happened, in order."""

    states: int
    faults: dict[str, list[str]]


def search(rules: Rules, begin: State = BEGIN) -> Found:
    """All states. A state with a fault is not followed further."""
    before: dict[State, tuple[State, str] | None] = {begin: None}
    todo, faults = deque([begin]), {}
    healed: dict[State, str | None] = {}
    while todo:
        state = todo.popleft()
        fault = broken(state) or unhealed(rules, state, healed)
        if fault is not None:
            if fault not in faults:
                faults[fault] = path(before, state)
            continue
        for said, reached in steps(rules, state):
            if reached not in before:
                before[reached] = (state, said)
                todo.append(reached)
    return Found(len(before), faults)


def path(before: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    said = []
    while (came := before[state]) is not None:
        state, step = came
        said.append(step)
    return said[::-1]


def broken(state: State) -> str | None:
    """What is wrong with the state itself."""
    rows = [row for row in state.journal if row is not None]
    if len(rows) != len(state.journal):
        return "a gap"
    for one, next in pairwise(rows):
        if next.on != one.name:
            return "two histories"
        if next.read < one.read:
            return "mail read twice"
    for worker in WORKERS:
        holder = state.holder(worker)
        if holder is not None and holder.durable != state.journal[: len(holder.durable)]:
            return "an effect of what is not recorded"
    if len(set(state.letters)) != len(state.letters):
        return "a message twice"
    if state.owner is None and not state.due and state.late is None:
        if rows[-1].read < len(state.letters):
            return "a lost wake-up"
        if rows[-1].busy:
            return "a run put away that has something to do"
    return None


def unhealed(rules: Rules, state: State, known: dict[State, str | None]) -> str | None:
    """What is still wrong when everything goes well from here on: what was sent arrives, answers
    come, beats reconcile, due runs are claimed, mail is read and what is idle is parked."""
    calm = state._replace(budget=Budget(0, 0, 0, 0))
    if calm in known:
        return known[calm]
    seen, now = [], calm
    fault: str | None = "no rest"
    for _ in range(40):
        if now in known:
            fault = known[now]
            break
        seen.append(now)
        further = next(going_well(rules, now), None)
        if further is None:
            fault = resting(now)
            break
        now = further
    known.update(dict.fromkeys(seen, fault))
    return fault


def resting(state: State) -> str | None:
    last = state.journal[-1]
    assert last is not None
    if state.owner is not None:
        return "an orphan"
    if last.read != len(state.letters):
        return "mail never read"
    return "work never done" if last.busy else None


def going_well(rules: Rules, state: State) -> Iterator[State]:
    """The next thing that happens, first come first."""
    if state.late is not None:
        yield arriving(rules, state)
    for _, reached in posting(rules, state):
        yield reached
    for worker in WORKERS:
        for some in (reconciling, committing):
            for _, reached in some(rules, state, worker):
                yield reached
    for worker in WORKERS:
        holder = state.holder(worker)
        if holder is not None and not holder.flight:
            last = holder.last
            if last.busy or last.read < len(state.letters):
                number = len(state.journal)
                row = Row(f"{worker}+{number}", last.name, len(state.letters), busy=False)
                yield state.holding(worker, holder._replace(flight=(row,)))
            for _, reached in parking(rules, state, worker):
                yield reached
    for worker in WORKERS:
        for _, reached in claiming(state, worker):
            yield reached
