"""What goes wrong in an expression, and where.

`ExprError` is the only exception callers of this package see (`TemplateErrors` gathers several).
`Fault` and `Exhausted` travel inside an evaluation: CEL's `&&` and `||` may absorb a fault, and
must never absorb an exhausted budget. No message repeats a value read from the variables, but for
a key that was looked up.
"""

from __future__ import annotations


class ExprError(Exception):
    """An expression that cannot be compiled or evaluated.

    `line` and `column` count from 1 within `source`, the whole text that was compiled (for a
    template the whole string, not only what stands between the braces). `pointer` is the JSON
    pointer of that string inside a template value, None outside templates.
    """

    def __init__(
        self, message: str, line: int, column: int, source: str, pointer: str | None = None
    ) -> None:
        super().__init__(message, line, column, source, pointer)
        self.message = message
        self.line = line
        self.column = column
        self.source = source
        self.pointer = pointer

    def __str__(self) -> str:
        shown = self.source if len(self.source) <= 200 else f"{self.source[:200]}…"
        where = f"line {self.line}, column {self.column} of `{shown}`"
        if self.pointer is not None:
            where = f"{self.pointer or 'the whole value'}, {where}"
        return f"{self.message} ({where})"

    def placed(self, pointer: str) -> ExprError:
        """The same error, told to stand at `pointer`."""
        return ExprError(self.message, self.line, self.column, self.source, pointer)


class TemplateErrors(Exception):
    """Every problem of one template value: `problems` is a list of (JSON pointer, ExprError)."""

    def __init__(self, problems: list[tuple[str, ExprError]]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(str(error) for _, error in self.problems)


class Fault(Exception):
    """An error value of CEL. `at` is the offset in the source, negative until a node knows it."""

    def __init__(self, message: str, at: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class Exhausted(Exception):
    """The budget of an evaluation is spent. Never absorbed."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def position(source: str, at: int) -> tuple[int, int]:
    """Line and column, from 1, of the offset `at`."""
    at = max(0, min(at, len(source)))
    start = source.rfind("\n", 0, at) + 1
    return source.count("\n", 0, at) + 1, at - start + 1


def error_at(message: str, source: str, at: int) -> ExprError:
    """An `ExprError` at an offset of `source`."""
    line, column = position(source, at)
    return ExprError(message, line, column, source)
