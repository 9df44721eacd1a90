"""Prints what compiling and evaluating a few expressions costs, in microseconds.

    python bench/expr.py

Targets: a small condition compiles in at most 60 µs and evaluates in at most 2 µs; a macro costs
the same per item however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from perdure.expr import compile_condition, compile_expression, compile_template

SCOPE: dict[str, Any] = {
    "tasks": {
        "fetch": {"status": "completed", "output": {"body": {"total": 2_000, "tags": ["a", "b"]}}}
    },
    "input": {"name": "Ann", "email": "ann@example.org", "rows": list(range(5_000))},
}
SMALL = (
    "tasks.fetch.output.body.total > 1000",
    "input.name == 'Ann' && tasks.fetch.output.body.total > 1000",
    "has(tasks.fetch.output) ? tasks.fetch.output.body.total : 0",
    "'a' in tasks.fetch.output.body.tags",
    "input.?nickname.orValue(input.name)",
    "input.email.matches('^[^@]+@[^@]+$')",
    "'Dear ' + input.name",
)
MACROS = (
    "input.rows.filter(r, r > 10).size()",
    "input.rows.map(r, r * 2).size()",
    "input.rows.all(r, r >= 0)",
    "input.rows.transformList(i, r, i + r).size()",
)
TEMPLATE = {"to": "{{ input.email }}", "text": "Dear {{ input.name }}", "n": [1, 2, 3]}


def cost(run: Callable[[], object], seconds: float = 0.2) -> float:
    """Microseconds of one call: the best of five rounds."""
    count, best = 1, float("inf")
    while True:
        begin = perf_counter()
        for _ in range(count):
            run()
        spent = perf_counter() - begin
        if spent > seconds / 5:
            break
        count *= 2
    for _ in range(5):
        begin = perf_counter()
        for _ in range(count):
            run()
        best = min(best, (perf_counter() - begin) / count)
    return best * 1e6


def main() -> None:
    print(f"{'compile':>9} {'evaluate':>9}  µs")
    for text in SMALL:
        program = compile_expression(text)
        compiling = cost(partial(compile_expression, text))
        evaluating = cost(partial(program.evaluate, SCOPE))
        print(f"{compiling:9.1f} {evaluating:9.2f}  {text}")
    condition = compile_condition(f"{{{{ {SMALL[0]} }}}}")
    print(f"{'':9} {cost(lambda: condition.evaluate(SCOPE)):9.2f}  as a condition: {SMALL[0]}")
    template = compile_template(TEMPLATE)
    print(
        f"{cost(lambda: compile_template(TEMPLATE)):9.1f}"
        f" {cost(lambda: template.render(SCOPE)):9.2f}  a template of three values"
    )
    print(f"\n{'per item':>19}  µs")
    for text in MACROS:
        program = compile_expression(text)
        each = cost(partial(program.evaluate, SCOPE)) / len(SCOPE["input"]["rows"])
        print(f"{each:19.3f}  {text}")


if __name__ == "__main__":
    main()
