"""Expressions and templates: an interpreter of CEL, in tree and pure.

It owns what stands between `{{` and `}}`: compiling it, telling what it reads, evaluating it
within a budget. It is in tree because the routing of recorded runs must mean the same for ever,
because reads are told from the syntax tree, and because every evaluation must be bounded. It
refuses protobuf messages, clocks, chance, and anything whose cost it cannot bound.
"""

from __future__ import annotations

from perdure.expr.budget import Budget
from perdure.expr.errors import ExprError, TemplateErrors
from perdure.expr.program import Program, compile_expression
from perdure.expr.references import References
from perdure.expr.template_text import Condition, compile_condition
from perdure.expr.templates import Template, compile_template, reveal

__all__ = [
    "Budget",
    "Condition",
    "ExprError",
    "Program",
    "References",
    "Template",
    "TemplateErrors",
    "compile_condition",
    "compile_expression",
    "compile_template",
    "reveal",
]
