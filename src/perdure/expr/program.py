"""An expression compiled once and evaluated often: the small port the rest of the project uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.expr.access import Eval
from perdure.expr.budget import DEFAULT, Budget
from perdure.expr.compiler import Compiler
from perdure.expr.errors import Exhausted, ExprError, Fault, error_at
from perdure.expr.lex import Token, tokenize
from perdure.expr.parse import Parser
from perdure.expr.references import References


class Program:
    """A compiled expression. Holds no state of an evaluation: it may be shared and kept.

    `text` is what was compiled, `refs` what the expression reads.
    """

    __slots__ = ("_room", "_run", "_start", "refs", "text")

    def __init__(self, text: str, start: int, run: Eval, slots: int, refs: References) -> None:
        self.text = text
        self.refs = refs
        self._start = start
        self._run = run
        self._room = [None] * slots

    def evaluate(self, variables: Mapping[str, object], budget: Budget | None = None) -> Any:
        """The value of the expression.

        Nothing of `variables` is copied or changed; a value read from it is returned as it is.
        Besides JSON the result may be one of the types of `perdure.expr.values`. Raises
        ExprError, and whatever a lazy mapping raises that is not a LookupError.
        """
        limits = DEFAULT if budget is None else budget
        try:
            return self._run([variables, limits.steps, limits.size, *self._room])
        except Fault as fault:
            at = self._start if fault.at < 0 else fault.at
            error = error_at(fault.message, self.text, at)
        except Exhausted as end:
            error = error_at(end.message, self.text, self._start)
        except RecursionError:
            error = error_at("the values are nested too deeply", self.text, self._start)
        raise error from None

    def error(self, message: str) -> ExprError:
        """An error about the expression as a whole."""
        return error_at(message, self.text, self._start)


def compile_expression(text: str, *, container: str = "", check: bool = False) -> Program:
    """Compile a whole text as one expression.

    `container`: the namespace in which names are looked up first, as CEL has it. `check`: refuse
    functions that do not exist and patterns that cannot work now, instead of when they are
    called. Raises ExprError with line and column.
    """
    tokens, _ = tokenize(text)
    return compile_tokens(text, tokens, container=container, check=check)


def compile_tokens(
    text: str, tokens: list[Token], *, container: str = "", check: bool = True
) -> Program:
    """Compile the expression these tokens of `text` make up."""
    start = tokens[0][2]
    try:
        tree = Parser(text, tokens).parse()
        compiler = Compiler(text, container, check)
        run = compiler.compile(tree)
    except RecursionError:
        raise error_at("the expression is nested too deeply", text, start) from None
    refs = compiler.reads.references(text)
    return Program(text, start, run, compiler.slots, refs)
