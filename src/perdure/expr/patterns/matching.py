"""Patterns as automata: built from the tree, made deterministic state by state while they run.

Each character of the text is one look-up once its state is known; learning a state costs as many
steps of the budget as the pattern has live branches. The memory of learned states is bounded and
simply forgotten when full.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from perdure.expr.budget import Env, take_steps
from perdure.expr.errors import Fault
from perdure.expr.patterns.syntax import SyntaxReader, Tree

MAX_SUBJECT = 1_000_000
_MAX_PATTERN = 4_000
_MAX_NODES = 4_000
_MAX_MOVES = 20_000

_BEGIN, _NEWLINE, _WORD, _OTHER = range(4)
_WORDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class _State:
    """A set of nodes to stand at, and what kind of character came before."""

    __slots__ = ("before", "core", "moves")

    def __init__(self, core: frozenset[int], before: int) -> None:
        self.core = core
        self.before = before
        self.moves: dict[str | None, _State | bool] = {}


class Pattern:
    """A compiled pattern. Keeps what it learns about its states between searches."""

    def __init__(self, pattern: str) -> None:
        self._nodes: list[tuple[Any, ...]] = [("match",)]
        self._start = self._emit(SyntaxReader(pattern).read(), 0)
        self._forget()

    def search(self, env: Env, text: str) -> bool:
        """Whether the pattern is found anywhere in the text."""
        if len(text) > MAX_SUBJECT:
            raise Fault(f"matches() takes strings of at most {MAX_SUBJECT} characters")
        take_steps(env, 1 + (len(text) >> 4))
        state = self._first
        for char in text:
            move = state.moves.get(char)
            if move is None:
                move = self._learn(env, state, char)
            if move is True:
                return True
            state = move  # type: ignore[assignment]  # only the end moves to False
        end = state.moves.get(None)
        return (self._learn(env, state, None) if end is None else end) is True

    def _forget(self) -> None:
        self._learned = 0
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self._first = self._state(frozenset({self._start}), _BEGIN)

    def _state(self, core: frozenset[int], before: int) -> _State:
        key = (core, before)
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = _State(core, before)
        return found

    def _learn(self, env: Env, state: _State, char: str | None) -> _State | bool:
        if self._learned >= _MAX_MOVES:
            self._forget()
        self._learned += 1
        move = state.moves[char] = self._move(env, state, char)
        return move

    def _move(self, env: Env, state: _State, char: str | None) -> _State | bool:
        seen = set(state.core)
        pending = list(seen)
        core = {self._start}
        while pending:
            node = self._nodes[pending.pop()]
            following: tuple[int, ...] = ()
            if node[0] == "match":
                return True
            if node[0] == "set":
                if char is not None and node[1].holds(char):
                    core.add(node[2])
            elif node[0] == "split":
                following = node[1]
            elif _holds(node[1], state.before, char):
                following = (node[2],)
            for each in following:
                if each not in seen:
                    seen.add(each)
                    pending.append(each)
        take_steps(env, 1 + (len(seen) >> 1))
        if char is None:
            return False
        before = _WORD if char in _WORDS else _NEWLINE if char == "\n" else _OTHER
        return self._state(frozenset(core), before)

    def _add(self, *node: Any) -> int:
        if len(self._nodes) >= _MAX_NODES:
            raise Fault("the pattern cannot be used: it is too large")
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _emit(self, tree: Tree, then: int) -> int:
        """Nodes for `tree` that go on at `then`; returns where they start."""
        kind = tree[0]
        if kind == "cat":
            for part in reversed(tree[1]):
                then = self._emit(part, then)
            return then
        if kind == "alt":
            return self._add("split", tuple(self._emit(part, then) for part in tree[1]))
        if kind == "rep":
            return self._repeat(tree[1], tree[2], tree[3], then)
        return self._add(kind, tree[1], then)

    def _repeat(self, part: Tree, least: int, most: int | None, then: int) -> int:
        if most is None:
            loop = self._add("split", ())
            self._nodes[loop] = ("split", (self._emit(part, loop), then))
            then = loop
        else:
            end = then
            for _ in range(most - least):
                then = self._add("split", (self._emit(part, then), end))
        for _ in range(least):
            then = self._emit(part, then)
        return then


def _holds(name: str, before: int, char: str | None) -> bool:
    if name == "begin":
        return before == _BEGIN
    if name == "end":
        return char is None
    if name == "line-begin":
        return before in {_BEGIN, _NEWLINE}
    if name == "line-end":
        return char is None or char == "\n"
    return ((before == _WORD) != (char in _WORDS)) is (name == "word")


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Pattern:
    """The automaton of a pattern, or a fault that says what it cannot do."""
    if len(pattern) > _MAX_PATTERN:
        raise Fault(f"the pattern is longer than {_MAX_PATTERN} characters")
    return Pattern(pattern)
