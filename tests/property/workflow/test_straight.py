"""What is decided straight is what the general way decides: any program, any schedule."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec import Raw

from perdure.kernel.actions import Transition
from perdure.kernel.code import machine
from perdure.kernel.code.call import STEP, Call, CallFuture, How
from perdure.kernel.code.calls import Calls
from perdure.kernel.code.deciding import decide_generally
from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.events import Event, NodeCompleted
from perdure.kernel.protocol import Load
from tests.property.workflow.plays import Reload, never, play, sometimes
from tests.property.workflow.programs import program, workflow_of
from tests.unit.kernel.code.board import Board, text

PARTS = 5
PROGRAMS = 200


class Doubtful(Board):
    """Every report comes after ones of other tasks and attempts, and comes twice."""

    def complete(self, node: str, output: Any = None) -> Transition:
        state, given = self.run.nodes[node], text(output)
        last = next(reversed(self.run.nodes))
        for task, at, attempt in (
            ("other", node, state.attempt),
            (state.task, node, state.attempt + 1),
            (state.task, node, state.attempt - 1),
            (state.task, "nowhere", state.attempt),
            (self.run.nodes[last].task, node if last != node else "~", state.attempt),
        ):
            self.ignored(NodeCompleted(task, at, attempt, given))
        made = super().complete(node, output)
        if self.run.status == "running" and self.run.life == 1:
            self.ignored(NodeCompleted(state.task, node, state.attempt, given))
        return made

    def ignored(self, report: NodeCompleted) -> None:
        before = len(self.journal)
        assert self.apply(report).ignored is not None
        assert len(self.journal) == before


def generally(calls: Calls, node: str, input: Raw | None, how: How) -> CallFuture:
    return calls.dispatch(Call(node, STEP, input, how))


@pytest.mark.rule("W-28")
@pytest.mark.parametrize("reload", [never, sometimes])
@pytest.mark.parametrize("part", range(PARTS))
def test_a_step_is_decided_straight_as_it_is_generally(
    part: int, reload: Reload, monkeypatch: pytest.MonkeyPatch
) -> None:
    general = 0

    def counted(decider: CodeMachine, event: Event) -> Transition | Load:
        nonlocal general
        general += type(event) is NodeCompleted
        return decide_generally(decider, event)

    reports = {True: 0, False: 0}
    for number in range(PROGRAMS):
        seed = 4_000_000 + PROGRAMS * part + number
        journals = []
        for straight in (True, False):
            random, general = Random(seed), 0
            made = workflow_of(program(random), lives=1 + number % 2)
            with monkeypatch.context() as patched:
                if straight:
                    patched.setattr(machine, "decide_generally", counted)
                else:
                    patched.setattr(CodeMachine, "decide", counted)
                    patched.setattr(Calls, "step", generally)
                journal, _ = play(
                    made, random.randint(0, 10**9), reload, retries=number % 3, on=Doubtful
                )
                journals.append(journal)
                reports[straight] += general
        assert journals[0] == journals[1], f"program of seed {seed}"
    assert 0 < reports[True] < reports[False] - PROGRAMS // 5
