"""How much an evaluation may do: steps, and the size of what it builds.

Depth is bounded when an expression is parsed. Straight-line code costs what its text says and is
not counted; what is counted is every turn of a macro and every string, list or map that a call
or an operator builds, so that a budget costs nothing where it cannot matter.
"""

from __future__ import annotations

from typing import Any

import msgspec

from perdure.expr.errors import Exhausted

# An evaluation's state is one list: the variables, what is left of the budget, macro variables.
Env = list[Any]
VARIABLES, STEPS, SIZE, FIRST_SLOT = 0, 1, 2, 3

MAX_TEXT = 65_536
MAX_NESTING = 64
MAX_DEPTH = 200


class Budget(msgspec.Struct, frozen=True):
    """Limits of one evaluation.

    `steps`: turns of macros, items compared, states of a pattern. `size`: characters, bytes and
    items built along the way and in the result. The defaults allow what takes about a second.
    """

    steps: int = 1_000_000
    size: int = 10_000_000


DEFAULT = Budget()


def take_steps(env: Env, count: int) -> None:
    """Spend `count` steps or raise `Exhausted`."""
    left = env[STEPS] - count
    env[STEPS] = left
    if left < 0:
        raise Exhausted("the expression takes too many steps: its budget of steps is spent")


def take_length(env: Env, length: int) -> None:
    """Spend the steps of looking through a text or list of this length at C speed."""
    if length > 1023:
        take_steps(env, length >> 10)


def take_size(env: Env, count: int) -> None:
    """Spend `count` characters, bytes or items of output or raise `Exhausted`."""
    left = env[SIZE] - count
    env[SIZE] = left
    if left < 0:
        raise Exhausted("the expression builds too much: its budget of output size is spent")
