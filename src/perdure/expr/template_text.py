"""One template string: literal text with `{{ expression }}` in it.

The end of an expression is found by reading it, so `}}` inside a string or two closing braces of
maps end nothing. `{{{{` is a literal `{{`. What is put in is never scanned again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perdure.expr.budget import DEFAULT, Budget
from perdure.expr.errors import ExprError, Fault, error_at
from perdure.expr.lex import tokenize
from perdure.expr.program import Program, compile_tokens
from perdure.expr.references import References, merge
from perdure.expr.results import plain, text, truth
from perdure.expr.values import INT_MAX, INT_MIN

Scope = Mapping[str, object]


class TemplateText:
    """A compiled template string.

    `pieces` are literal texts and programs in order; a string without a template has one text
    (or none). `whole` is the program when the string is exactly one expression, whose value then
    keeps its type.
    """

    __slots__ = ("pieces", "programs", "refs", "source", "whole")

    def __init__(self, source: str, pieces: list[str | Program]) -> None:
        self.source = source
        self.pieces = pieces
        self.programs = [piece for piece in pieces if isinstance(piece, Program)]
        self.whole = self.programs[0] if len(pieces) == 1 and self.programs else None
        self.refs: References = merge(program.refs for program in self.programs)

    def literal(self) -> str:
        """The text of a string that holds no expression."""
        return "".join(piece for piece in self.pieces if isinstance(piece, str))

    def render(self, scope: Scope, budget: Budget | None = None) -> Any:
        """The JSON value of the string in this scope; ExprError when there is none."""
        if self.whole is not None:
            return whole_render(self.whole)(scope, budget)
        room = (budget or DEFAULT).size
        out: list[str] = []
        for piece in self.pieces:
            if isinstance(piece, Program):
                shown = _converted(piece, text, piece.evaluate(scope, budget), room)
                room -= len(shown)
                out.append(shown)
            else:
                out.append(piece)
        return "".join(out)


def whole_render(program: Program) -> Callable[[Scope, Budget | None], Any]:
    """How to render a string that is exactly one expression: its value keeps its type."""
    evaluate = program.evaluate

    def render(scope: Scope, budget: Budget | None) -> Any:
        value = evaluate(scope, budget)
        # Most values are plain at first sight.
        kind = type(value)
        if kind is str or kind is bool or (kind is int and INT_MIN <= value <= INT_MAX):
            return value
        return _converted(program, plain, value, (budget or DEFAULT).size)

    return render


def _converted(program: Program, convert: Callable[[Any, int], Any], value: Any, room: int) -> Any:
    try:
        return convert(value, room)
    except Fault as fault:
        error = program.error(fault.message)
    except RecursionError:
        error = program.error("the result is nested too deeply")
    raise error from None


def compile_text(source: str, problems: list[ExprError] | None = None) -> TemplateText:
    """Compile a template string; raises ExprError with line and column within it.

    With a list of `problems` nothing is raised: every problem is added to the list.
    """
    pieces: list[str | Program] = []
    plain_text: list[str] = []
    at = 0
    while (brace := source.find("{{", at)) >= 0:
        plain_text.append(source[at:brace])
        if source.startswith("{{{{", brace):
            plain_text.append("{{")
            at = brace + 4
            continue
        if any(plain_text):
            pieces.append("".join(plain_text))
        plain_text = []
        at = len(source)
        try:
            tokens, at = tokenize(source, brace + 2, template=True)
            pieces.append(compile_tokens(source, tokens))
        except ExprError as error:
            if problems is None:
                raise
            problems.append(error)
    plain_text.append(source[at:])
    if any(plain_text):
        pieces.append("".join(plain_text))
    return TemplateText(source, pieces)


class Condition:
    """A compiled condition: a template string whose value is taken for true or false.

    Text, non-zero numbers, lists and maps are true; "", 0, 0.0 and null are false.
    """

    __slots__ = ("_text", "refs", "text")

    def __init__(self, compiled: TemplateText) -> None:
        self._text = compiled
        self.text = compiled.source
        self.refs = compiled.refs

    def evaluate(self, scope: Scope, budget: Budget | None = None) -> bool:
        """Whether the condition holds in this scope; ExprError when it cannot be told."""
        whole = self._text.whole
        if whole is None:
            return bool(self._text.render(scope, budget))
        value = whole.evaluate(scope, budget)
        if value is True or value is False:
            return bool(value)
        try:
            return truth(value)
        except Fault as fault:
            error = whole.error(fault.message)
        raise error from None


def compile_condition(source: str) -> Condition:
    """Compile a condition. A text without a template is refused: it would always be true."""
    compiled = compile_text(source)
    if not compiled.programs:
        raise error_at(
            "a condition needs a template, as in {{ input.total > 100 }}; a bare text is always"
            " true",
            source,
            0,
        )
    if "secrets" in compiled.refs.roots:
        line_column = compiled.refs.root_positions["secrets"]
        error = error_at("a condition may not read secrets: its outcome is recorded", source, 0)
        error.line, error.column = line_column
        raise error
    return Condition(compiled)
