"""Whatever a workflow does, and whenever its process dies: the same journal and the same result."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from perdure.flow.workflow import Workflow
from tests.property.workflow.programs import NAMES, program, workflow_of
from tests.unit.kernel.code.board import Board

MOVES = 60


def play(workflow: Workflow[Any, Any], schedule: int, reload: Any) -> tuple[list[bytes], int]:
    """Run a workflow under a random schedule; its journal, and how often it was reloaded."""
    chance, crashes = Random(schedule), Random(schedule + 1)
    cancel_at = chance.choice([None, None, None, chance.randint(1, 12)])
    board = Board(workflow)
    reloads = 0
    for move in range(MOVES):
        if board.run.status != "running":
            break
        if reload(crashes):
            board.reload()
            reloads += 1
        _move(board, chance, cancel=move == cancel_at)
    board.machine.close()
    return [msgspec.json.encode(transition) for transition in board.journal], reloads


def _move(board: Board, chance: Random, *, cancel: bool) -> None:
    if cancel:
        board.cancel("enough")
        return
    pending = board.pending
    timers = sorted(
        (node for node in board.waiting if board.run.nodes[node].wake_at is not None),
        key=lambda node: (board.run.nodes[node].wake_at, node),
    )
    choices = ["complete"] * 4 * bool(pending) + ["fail"] * bool(pending) + ["fire"] * bool(timers)
    match chance.choice([*choices, "send"]):
        case "complete":
            board.complete(chance.choice(pending), chance.randint(1, 9))
        case "fail":
            board.fail(chance.choice(pending), permanent=chance.random() < 0.5)
        case "fire":
            board.fire(timers[0])
        case _:
            board.send(chance.choice(NAMES), chance.randint(100, 200))


def check(seed: int) -> int:
    random = Random(seed)
    made = workflow_of(program(random))
    schedule = random.randint(0, 10**9)
    undisturbed, _ = play(made, schedule, lambda crashes: False)
    always, _ = play(made, schedule, lambda crashes: True)
    assert always == undisturbed, f"program of seed {seed}, reloaded before every event"
    sometimes, reloads = play(made, schedule, lambda crashes: crashes.random() < 0.3)
    assert sometimes == undisturbed, f"program of seed {seed}, reloaded at times"
    return reloads


@pytest.mark.parametrize("part", range(10))
def test_a_workflow_reloaded_at_any_moment_decides_the_same(part: int) -> None:
    # The seeds are fixed: a failing one is named, and fails again.
    reloads = sum(check(1000 * part + number) for number in range(100))
    assert reloads > 100
