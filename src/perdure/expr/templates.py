"""Templates: a whole JSON value whose strings may hold expressions.

Everything compiles when a definition is loaded, and all problems are reported together, each with
its JSON pointer. Rendering copies only what lies on the way to a template. Keys of objects are
never templates. A string that reads `secrets` is left as it is: only its reference may be stored,
and `reveal` puts the secret in when a step is dispatched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from perdure.expr.budget import Budget
from perdure.expr.errors import ExprError, TemplateErrors, error_at
from perdure.expr.program import Program
from perdure.expr.references import References, merge
from perdure.expr.template_text import Scope, TemplateText, compile_text, whole_render

MAX_DEPTH = 200

Render = Callable[[Scope, Budget | None], Any]


class TemplatePart(msgspec.Struct, frozen=True):
    """One string with expressions: where it stands, its text, its reads, its programs."""

    pointer: str
    text: str
    refs: References
    programs: list[Program]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.pointer, self.text, self.refs, self.programs))


class Template(msgspec.Struct, frozen=True):
    """A compiled template value.

    `value` is what was compiled. `constant`: it holds no expression. `parts`: the strings with
    expressions, in order; each unpacks to (pointer, text, refs, programs). `refs`: all their reads
    merged (positions are those within the first string that reads the name). `secrets`: pointer to
    text of the strings that read `secrets`, which rendering leaves as they are.
    """

    value: Any
    parts: tuple[TemplatePart, ...]
    refs: References
    secrets: dict[str, str]
    build: Render | None

    @property
    def constant(self) -> bool:
        return not self.parts

    def render(self, scope: Scope, budget: Budget | None = None) -> Any:
        """The JSON value in this scope. A constant template gives the same object each time.

        Every expression has the whole budget to itself. Raises ExprError that names the JSON
        pointer, the line and column, and the text.
        """
        return self.value if self.build is None else self.build(scope, budget)


class _Compiler:
    def __init__(self) -> None:
        self.problems: list[tuple[str, ExprError]] = []
        self.parts: list[TemplatePart] = []
        self.secrets: dict[str, str] = {}

    def compile(self, value: Any, pointer: str, depth: int) -> tuple[Any, Render | None]:
        """The value with its literal strings settled, and how to render it if that takes work."""
        kind = type(value)
        if kind is str:
            return self.string(value, pointer)
        if kind is not dict and kind is not list:
            return value, None
        if depth > MAX_DEPTH:
            error = error_at(f"the value is nested deeper than {MAX_DEPTH} levels", "", 0)
            self.problems.append((pointer, error.placed(pointer)))
            return value, None
        entries = value.items() if kind is dict else enumerate(value)
        settled: Any = value
        renders: list[tuple[Any, Render]] = []
        for key, item in entries:
            step = str(key).replace("~", "~0").replace("/", "~1")
            new, render = self.compile(item, f"{pointer}/{step}", depth + 1)
            if new is not item:
                settled = value.copy() if settled is value else settled
                settled[key] = new
            if render is not None:
                renders.append((key, render))
        return settled, _container(settled, renders) if renders else None

    def string(self, value: str, pointer: str) -> tuple[Any, Render | None]:
        if "{{" not in value:
            return value, None
        found: list[ExprError] = []
        compiled = compile_text(value, found)
        secret = _reads_secrets(compiled, found)
        if found:
            self.problems += [(pointer, error.placed(pointer)) for error in found]
            return value, None
        if not compiled.programs:
            return compiled.literal(), None
        self.parts.append(TemplatePart(pointer, value, compiled.refs, compiled.programs))
        if secret:
            self.secrets[pointer] = value
            return value, None
        return value, _string_render(compiled, pointer)


def _container(settled: Any, renders: list[tuple[Any, Render]]) -> Render:
    if len(renders) == 1:
        [(only, render_only)] = renders

        def build_one(scope: Scope, budget: Budget | None) -> Any:
            out = settled.copy()
            out[only] = render_only(scope, budget)
            return out

        return build_one

    def build(scope: Scope, budget: Budget | None) -> Any:
        out = settled.copy()
        for key, render in renders:
            out[key] = render(scope, budget)
        return out

    return build


def _string_render(compiled: TemplateText, pointer: str) -> Render:
    whole = compiled.whole
    render = compiled.render if whole is None else whole_render(whole)

    def build(scope: Scope, budget: Budget | None) -> Any:
        try:
            return render(scope, budget)
        except ExprError as error:
            placed = error.placed(pointer)
        raise placed from None

    return build


def _reads_secrets(compiled: TemplateText, problems: list[ExprError]) -> bool:
    if "secrets" not in compiled.refs.roots:
        return False
    others = compiled.refs.roots - {"secrets"}
    if not others or problems:
        return True
    error = error_at(
        f"a string that reads secrets may read nothing else, and this one reads"
        f" {', '.join(sorted(others))}",
        compiled.source,
        0,
    )
    error.line, error.column = compiled.refs.root_positions["secrets"]
    problems.append(error)
    return True


def compile_template(value: Any) -> Template:
    """Compile all templates of a JSON value; raises TemplateErrors with every problem."""
    compiler = _Compiler()
    settled, build = compiler.compile(value, "", 0)
    if compiler.problems:
        raise TemplateErrors(compiler.problems)
    refs = merge(part.refs for part in compiler.parts)
    return Template(settled, tuple(compiler.parts), refs, compiler.secrets, build)


_cached = lru_cache(maxsize=512)(compile_text)


def reveal(value: Any, secrets_at: Mapping[str, str], secrets: Mapping[str, str]) -> Any:
    """A copy of a rendered value with its secrets put in.

    `secrets_at` is `Template.secrets`: each text is rendered with only `secrets` in scope and put
    at its pointer; `value` itself is not changed. Raises ExprError, whose message never holds a
    secret, for a secret that does not exist and for a pointer that `value` does not have.
    """
    for pointer, source in secrets_at.items():
        try:
            shown = _cached(source).render({"secrets": secrets})
        except ExprError as error:
            message = error.message
            for secret in secrets.values():
                if secret:
                    message = message.replace(secret, "***")
            hidden = ExprError(message, error.line, error.column, source, pointer)
        else:
            value = _replaced(value, pointer, shown, source)
            continue
        raise hidden from None
    return value


def _replaced(value: Any, pointer: str, shown: Any, source: str) -> Any:
    if not pointer:
        return shown
    step, slash, rest = pointer[1:].partition("/")
    name = step.replace("~1", "/").replace("~0", "~")
    if isinstance(value, dict) and name in value:
        key: Any = name
    elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
        key = int(name)
    else:
        raise error_at("the value has no place for this secret", source, 0).placed(pointer)
    out: Any = value.copy()
    out[key] = _replaced(value[key], slash + rest, shown, source)
    return out
