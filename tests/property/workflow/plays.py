"""Plays a workflow under a random schedule: outcomes, signals, timers and cancels in some order,
its code let go of and brought back from the journal whenever `reload` says so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from perdure.flow.workflow import Workflow
from perdure.kernel.actions import CreateTask
from perdure.kernel.run import GRACE
from perdure.model.errors import InvalidRequest
from tests.property.workflow.programs import NAMES
from tests.unit.kernel.code.board import Board
from tests.unit.kernel.harness import plain

MOVES = 60
Reload = Callable[[Random], bool]


def never(crashes: Random) -> bool:
    return False


def always(crashes: Random) -> bool:
    return True


def sometimes(crashes: Random) -> bool:
    return crashes.random() < 0.3


def play(
    workflow: Workflow[Any, Any],
    schedule: int,
    reload: Reload,
    *,
    retries: int = 0,
    on: type[Board] = Board,
) -> tuple[list[bytes], int]:
    """The journal of a run, action by action, and how often it was reloaded. It is retried from
    anywhere, so many times, once it has ended."""
    chance, crashes = Random(schedule), Random(schedule + 1)
    cancel_at = chance.choice([None, None, None, chance.randint(1, 12)])
    board = on(workflow)
    reloads = 0
    for move in range(MOVES * (1 + retries)):
        if board.run.status != "running":
            if not retries:
                break
            retries -= 1
            with suppress(InvalidRequest):  # a call after one that was taken back: another time
                board.retry(_somewhere(board, chance))
                _check_undone(board)
            continue
        if reload(crashes):
            board.reload()
            reloads += 1
        _move(board, chance, cancel=move == cancel_at)
    board.machine.close()
    return [msgspec.json.encode(plain(transition)) for transition in board.journal], reloads


def _check_undone(board: Board) -> None:
    """What was taken back by a call that is forgotten now does not count as done."""
    tasks: dict[str, str] = {}
    nodes = board.run.nodes
    for transition in board.journal[:-1]:
        for action in transition.actions:
            if isinstance(action, CreateTask):
                tasks[action.node] = action.task
                if action.undoes is None or action.node in nodes:
                    continue
                first = nodes.get(action.undoes)
                assert (
                    first is None
                    or first.task != tasks[action.undoes]
                    or first.status != "completed"
                )


def _somewhere(board: Board, chance: Random) -> str | None:
    """A call of the run's, or None: where it failed."""
    if board.end.status == "failed" and chance.random() < 0.4:
        return None
    made = sorted(
        node
        for transition in board.journal
        for node in (a.node for a in transition.actions if isinstance(a, CreateTask))
        if node != GRACE and node in board.run.nodes
    )
    return chance.choice(made) if made else None


def _move(board: Board, chance: Random, *, cancel: bool) -> None:
    if cancel:
        board.cancel("enough")
        return
    asking = [node for node in board.pending if board.run.nodes[node].child is not None]
    pending = [node for node in board.pending if node not in asking]
    timers = sorted(
        (node for node in board.waiting if board.run.nodes[node].wake_at is not None),
        key=lambda node: (board.run.nodes[node].wake_at, node),
    )
    choices = ["complete"] * 4 * bool(pending) + ["fail"] * bool(pending) + ["fire"] * bool(timers)
    choices += ["child"] * 3 * bool(asking)
    match chance.choice([*choices, "send"]):
        case "child":
            _of_child(board, chance, chance.choice(asking))
        case "complete":
            board.complete(chance.choice(pending), chance.randint(1, 9))
        case "fail":
            board.fail(chance.choice(pending), permanent=chance.random() < 0.5)
        case "fire":
            board.fire(timers[0])
        case _:
            board.send(chance.choice(NAMES), chance.randint(100, 200))


def _of_child(board: Board, chance: Random, node: str) -> None:
    """What is told of a run that is asked for: it is there, and later it has ended."""
    child = board.run.nodes[node].child
    assert child is not None
    if child.created is None:
        board.find(node, created=chance.random() < 0.7)
    elif chance.random() < 0.7:
        board.end_child(node, chance.randint(1, 9))
    else:
        board.fail_child(node, status=chance.choice(["failed", "canceled"]))
