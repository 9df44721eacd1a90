"""Whether an engine's steps and definitions can be called as its graphs call them.

A call that cannot work would fail each run that comes to it, maybe days after it began: no new
run is started. Runs that are there go on: what they still have to do may lie elsewhere, and only
a run knows what it has behind it.
"""

from __future__ import annotations

from typing import Any

from perdure.flow.registry import Registry
from perdure.graph.calls import call_problems, child_problems
from perdure.graph.definition import Graph
from perdure.model.definition import Definition


def unfit(definition: Definition[Any, Any], registry: Registry) -> str:
    """Why no run of this definition should begin; "" if nothing speaks against it. Steps that
    are not there are not told here."""
    if not isinstance(definition, Graph):
        return ""
    document = definition._document
    problems = [
        f for f in call_problems(document, registry.steps) if not f.pointer.endswith("/spec/step")
    ]
    asked = child_problems(document, registry.definitions)
    problems += [f for f in asked if f.severity == "error"]
    if not problems:
        return ""
    lines = "".join(f"\n  {problem}" for problem in problems)
    return f"graph {definition.name} calls what cannot be called so:{lines}"
