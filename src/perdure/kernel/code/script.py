"""Script: what of a journal is replayed.

A retry dropped what was decided after some point, and the records of calls that had no outcome
then; a run that went on as new has nothing to do with what was before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from perdure.kernel.actions import (
    CancelTasks,
    CompleteTask,
    Continued,
    CreateTask,
    FinishRun,
    ReopenRun,
    ResolveWait,
    Transition,
)
from perdure.kernel.onward import Decided, Onward, plain

_WITH_OUTPUT: Final = (CreateTask, CompleteTask, ResolveWait)


class Script(msgspec.Struct):
    """A journal made ready to be replayed: the transitions to feed, with their places in it.
    `forgotten`: nodes that retries have reset. `apart`: those whose outputs stand apart."""

    transitions: list[tuple[int, Decided]]
    forgotten: frozenset[str]
    apart: tuple[str, ...]
    #: Where a retry lets the code go on otherwise than it did.
    lenient: frozenset[int] = frozenset()


def script_of(journal: Sequence[Decided]) -> Script:
    """What of a journal counts: a retry dropped what was decided after some point, and the
    records of calls that had no outcome then."""
    kinds = {
        type(action)
        for transition in journal
        if type(transition) is not Onward
        for action in transition.actions
    }
    if Continued in kinds or ReopenRun in kinds:
        journal = [plain(one) for one in journal]  # they are looked at again and again
    for place, transition in enumerate(journal if Continued in kinds else ()):
        if any(isinstance(action, Continued) for action in transition.actions):
            before = [Transition(0)] * place
            journal = [*before, since_continued(transition), *journal[place + 1 :]]
    kept: list[tuple[int, Decided]] = []
    forgotten: frozenset[str] = frozenset()
    lenient: frozenset[int] = frozenset()
    if ReopenRun not in kinds:
        kept = list(enumerate(journal, 1))
    for place, transition in enumerate(journal if ReopenRun in kinds else (), 1):
        reopened = next((a for a in transition.actions if isinstance(a, ReopenRun)), None)
        if reopened is not None:
            forgotten |= frozenset(reopened.reset)
            kept = without(kept, frozenset(reopened.reset), reopened.kept or 0)
            lenient |= {reopened.kept or 0}
        kept.append((place, transition))
    apart = {node for _, transition in kept for node in _apart(transition)}
    return Script(kept, forgotten, tuple(sorted(apart)), lenient)


def _apart(transition: Decided) -> Iterator[str]:
    """The nodes whose recorded outputs stand apart."""
    if type(transition) is not Onward:
        for action in transition.actions:
            if not isinstance(action, _WITH_OUTPUT):
                continue
            if action.output is None and action.output_ref is not None:
                yield action.node
    elif transition.output is None and transition.output_ref is not None:
        yield transition.node


def since_continued(transition: Decided) -> Transition:
    """A transition that continued the run as new, from there on: before is another life."""
    last = max(i for i, action in enumerate(transition.actions) if isinstance(action, Continued))
    return Transition(transition.at, transition.actions[last:])


def without(
    script: Sequence[tuple[int, Decided]], reset: frozenset[str], kept: int
) -> list[tuple[int, Decided]]:
    """The transitions up to a place, without what is about nodes that were reset, and without
    the run's end."""
    left: list[tuple[int, Decided]] = []
    for place, one in script:
        if place > kept:
            break
        ended = any(isinstance(action, FinishRun) for action in one.actions)
        actions = [
            action
            for action in one.actions
            if getattr(action, "node", None) not in reset
            and not (ended and isinstance(action, FinishRun | CancelTasks))
        ]
        left.append((place, Transition(one.at, actions)))
    return left
