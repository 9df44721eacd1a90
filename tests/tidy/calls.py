"""Finds calls and handlers that a floor must not contain.

import-linter sees imports of whole modules; this sees what imports cannot show: the clock behind
`datetime`, builtins, foreign packages nobody thought of, and handlers that swallow control flow.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator

from tests.tidy.tree import Source

PURE = {"model", "kernel", "expr", "codec"}
#: The doors decide nothing about time or chance either; they may read files (documents).
DOORS = {"graph", "saga", "flow"}
CLOCKS_AND_CHANCE = {"time", "random", "uuid", "secrets"}
OUTSIDE = {
    *("asyncio", "concurrent", "http", "logging", "multiprocessing", "os", "pathlib", "platform"),
    *("select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess"),
    *("tempfile", "threading", "urllib"),
}
#: Also the standard library's newest modules, which an older interpreter does not know.
STANDARD = sys.stdlib_module_names | {"annotationlib"}
#: What a part of a floor may import all the same, and only that part.
GRANTED = {
    # asyncio's Task and Future run on the workflow's own loop, which reads no clock and no socket.
    ("src/perdure/kernel/code/", "asyncio"),
    # The classes alone: chance is seeded from the run, ids are derived.
    ("src/perdure/flow/context.py", "random"),
    ("src/perdure/flow/context.py", "uuid"),
}
FOREIGN_IN_PURE = {"msgspec", "perdure"}

CLOCK_METHODS = {
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
}
NOWHERE = {
    "asyncio.get_event_loop": "asyncio.get_running_loop()",
    "datetime.datetime.utcnow": "an aware datetime",
    "datetime.datetime.utcfromtimestamp": "an aware datetime",
    "logging.basicConfig": "nothing: logging belongs to the application",
    "time.clock": "time.monotonic()",
}
#: What one file does for all.
ONCE = {
    "inspect.signature": (
        "src/perdure/flow/binding.py",
        "function_signature(): from Python 3.14 on annotations may name what does not exist yet",
    ),
}
#: Only a program may do these, never a library.
PROGRAM_ONLY = {"print", "input", "sys.exit", "exit", "quit"}
#: Builtins that are good names for other things: counted only where they are called.
ORDINARY_NAMES = {"input", "open", "exit", "quit"}
PROGRAMS = {"cli", "__main__"}


def aliases(tree: ast.Module) -> dict[str, str]:
    """Local name -> full dotted name, for every import anywhere in the file."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                top = name.name.split(".")[0]
                found[name.asname or top] = name.name if name.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                found[name.asname or name.name] = f"{node.module}.{name.name}"
    return found


def dotted(node: ast.expr, known: dict[str, str]) -> str:
    """`datetime.now` as the full name it stands for, or '' for what is not a plain name."""
    if isinstance(node, ast.Name):
        return known.get(node.id, node.id)
    if isinstance(node, ast.Attribute) and (base := dotted(node.value, known)):
        return f"{base}.{node.attr}"
    return ""


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every module imported at run time as (line, dotted name); type-only blocks reach nothing."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and dotted(node.test, {}).endswith("TYPE_CHECKING"):
            todo.extend(node.orelse)
            continue
        todo.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module


def banned_imports(source: Source) -> list[str]:
    """Modules that the source's floor may not import."""
    banned: set[str] = set()
    if source.floor in PURE:
        banned = CLOCKS_AND_CHANCE | OUTSIDE
    elif source.floor in DOORS:
        banned = CLOCKS_AND_CHANCE
    problems = []
    for line, name in imports(source.tree):
        top = name.split(".")[0]
        if any(str(source.path).startswith(part) and top == its for part, its in GRANTED):
            continue
        foreign = top not in STANDARD and top not in FOREIGN_IN_PURE
        if top in banned or (source.floor in PURE and foreign):
            problems.append(f"{source.path}:{line}: imports {name}: not on floor {source.floor}")
    return problems


def banned_calls(source: Source) -> list[str]:
    """Calls (also mentions, so that no alias hides them) that the source's floor may not make."""
    problems = []
    floor = source.floor
    known = aliases(source.tree)
    called = {id(node.func) for node in ast.walk(source.tree) if isinstance(node, ast.Call)}
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        name = dotted(node, known)
        if name in ORDINARY_NAMES and id(node) not in called:
            continue
        where = f"{source.path}:{node.lineno}: {name}"
        if name in NOWHERE:
            problems.append(f"{where}: use {NOWHERE[name]}")
        elif name in ONCE and str(source.path) != ONCE[name][0]:
            problems.append(f"{where}: use {ONCE[name][1]}")
        elif floor in PURE | DOORS and name in CLOCK_METHODS:
            problems.append(f"{where}: time comes from the event, not from a clock")
        elif floor in PURE and name == "open":
            problems.append(f"{where}: no files on floor {floor}")
        elif floor not in PROGRAMS and name in PROGRAM_ONLY:
            problems.append(f"{where}: only the cli may")
    return problems


def raises(body: list[ast.stmt]) -> bool:
    """Whether a handler's own code (not a function defined in it) raises."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Raise):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
    return False


def suppresses_everything(call: ast.Call) -> bool:
    """Whether a call is `suppress(BaseException)`."""
    return dotted(call.func, {}).split(".")[-1] == "suppress" and any(
        isinstance(a, ast.Name) and a.id == "BaseException" for a in call.args
    )


def swallowed_control_flow(source: Source) -> list[tuple[str, int]]:
    """`except BaseException` (or a bare `except`) that does not raise, as (path function, line).

    Such a handler eats cancellation, Ctrl-C and the engine's own eviction.
    """
    found: list[tuple[str, int]] = []

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.ExceptHandler):
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {k.id if isinstance(k, ast.Name) else None for k in kinds}
            if (node.type is None or "BaseException" in names) and not raises(node.body):
                found.append((f"{source.path} {function}", node.lineno))
        elif isinstance(node, ast.Call) and suppresses_everything(node):
            found.append((f"{source.path} {function}", node.lineno))
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(source.tree, "<module>")
    return found


BARE_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[)|#\s*noqa(?!:)", re.IGNORECASE)


def blanket_ignores(source: Source) -> list[str]:
    """Comments that silence a checker without saying which of its complaints."""
    if not BARE_IGNORE.search(source.text):
        return []
    return [
        f"{source.path}:{token.start[0]}: name the code that is ignored, and why"
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline)
        if token.type == tokenize.COMMENT and BARE_IGNORE.search(token.string)
    ]
