"""Writes the synchronous classes of perdure.blocking from the asynchronous ones.

    python .ci/mirror.py

A test compares what is in the tree with what this would write. Signatures, overloads and
documentation are copied; every body is one call of the asynchronous twin.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "perdure" / "client"
TARGETS = ROOT / "src" / "perdure" / "blocking"

#: Written by hand for synchronous programs, not promised yet, or about what is asynchronous.
LEFT_OUT = {"serve", "observe", "driver", "driver_as"}
WORDS = {
    "AsyncIterator": "Iterator",
    "as an async context manager. Safe to use from many\n    tasks of one event loop": (
        "as a context manager. Safe to use from many\n    threads, and in a child after a fork"
    ),
    "`async with Engine(": "`with Engine(",
    "outside `async with`": "outside `with`",
}


class Mirror(NamedTuple):
    """One class to write: which, its base, what stands in front of its methods."""

    module: str
    name: str
    bases: str
    head: str
    imports: str


MIRRORS = (
    Mirror(
        "run",
        "Run",
        "Generic[T_co]",
        """
    __slots__ = ("_client", "_id", "_of")

    def __init__(self, client: Mirrored, of: Definition[Any, T_co] | str, id: str) -> None:
        self._client = client
        self._of = of
        self._id = id

    @property
    def _async(self) -> Any:
        return self._client._async.get(self._of, self._id)

    def _call(self, coroutine: Any) -> Any:
        return self._client._call(coroutine)

    def _each(self, items: Any) -> Iterator[Any]:
        return self._client._each(items)
""",
        "from perdure.blocking.mirroring import Mirrored\n",
    ),
    Mirror(
        "client",
        "Client",
        "Mirrored",
        "\n    Handle = Run\n",
        "from perdure.blocking.mirroring import Mirrored\nfrom perdure.blocking.run import Run\n",
    ),
    Mirror(
        "engine",
        "Engine",
        "Serving, Client",
        "\n    Twin = AsyncEngine\n",
        "from perdure.blocking.client import Client\n"
        "from perdure.blocking.mirroring import Serving\n"
        "from perdure.client.engine import Engine as AsyncEngine\n",
    ),
)


def written(mirror: Mirror) -> str:
    """The text of one synchronous module, formatted."""
    text = (SOURCES / f"{mirror.module}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    [source] = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == mirror.name]
    methods = [method for node in source.body for method in _method(mirror, node)]
    body = "\n".join(methods)
    lines = text.splitlines()
    variables = [lines[n.lineno - 1] for n in tree.body if _is_variable(n)]
    used = {n.id for n in ast.walk(ast.parse(f"class X({mirror.bases}):\n{body}")) if _is_name(n)}
    used |= {name for name in ("Any", "Definition", "Iterator") if name in mirror.head}
    kept = [v for v in variables if v.split(" = ")[0] in used]
    if kept:
        used.add("TypeVar")
    made = "\n".join(
        [
            f'"""{mirror.name} for synchronous programs, as the asynchronous one.\n',
            f"Written by .ci/mirror.py from perdure/client/{mirror.module}.py:",
            'change that, and run the script again.\n"""\n',
            "from __future__ import annotations\n",
            mirror.imports + "\n".join(_imports(tree, used | {"Iterator"}, mirror)),
            "\n".join(kept),
            f'class {mirror.name}({mirror.bases}):\n    """{_said(source)}"""',
            mirror.head + body,
        ]
    )
    return _formatted(made)


def _is_variable(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and "TypeVar(" in ast.unparse(node.value)


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def _said(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    text = ast.get_docstring(node, clean=False) or ""
    for old, new in WORDS.items():
        text = text.replace(old, new)
    return text


def _imports(tree: ast.Module, used: set[str], mirror: Mirror) -> list[str]:
    """The source's own imports of the names that are used here, also those for types only."""
    mine = {name for line in mirror.imports.split() for name in line.split(",")}
    own = {name for node in tree.body if (name := _defined(node)) in used - mine - {mirror.name}}
    lines = [f"from perdure.client.{mirror.module} import {', '.join(sorted(own))}"] if own else []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module == "__future__":
            continue
        names = [
            (WORDS.get(a.name, a.name), a.asname)
            for a in node.names
            if WORDS.get(a.asname or a.name, a.asname or a.name) in used - mine
        ]
        if names:
            shown = ", ".join(
                name if alias is None else f"{name} as {alias}" for name, alias in names
            )
            lines.append(f"from {node.module} import {shown}")
    return [*lines, "from collections.abc import Iterator"] if "Iterator" in used else lines


def _defined(node: ast.stmt) -> str:
    """What a statement of the source's module names, but for type variables."""
    if isinstance(node, ast.ClassDef):
        return node.name
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and not _is_variable(node):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return ast.unparse(target)
    return ""


def _method(mirror: Mirror, node: ast.stmt) -> list[str]:
    """The source text of a method's mirror; nothing for what has none."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    if node.name == "__init__" and mirror.name != "Run":
        return [_shape(node) + f"        super()._make({_arguments(node)})\n"]
    if node.name.startswith("_") or node.name in LEFT_OUT:
        return []
    if any(ast.unparse(d) == "overload" for d in node.decorator_list):
        return [_shape(node).rstrip() + " ...\n"]
    return [_shape(node) + f'        """{_said(node)}"""\n' + _body(mirror, node)]


def _shape(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Decorators and signature."""
    lines = [f"    @{ast.unparse(d)}\n" for d in node.decorator_list]
    result = _kind(node) if node.returns is not None else "None"
    return "".join(lines) + f"    def {node.name}({ast.unparse(node.args)}) -> {result}:\n"


def _kind(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    assert node.returns is not None
    kind = ast.unparse(node.returns)
    for old, new in WORDS.items():
        kind = kind.replace(old, new)
    return kind


def _body(mirror: Mirror, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    result = _kind(node)
    if node.name in ("id", "workflow") and mirror.name == "Run":
        shown = "self._id" if node.name == "id" else "self._async.workflow"
        return f"        shown: str = {shown}\n        return shown\n"
    call = f"self._async.{node.name}({_arguments(node)})"
    if result.startswith("Iterator["):
        return f"        yield from self._each({call})\n"
    if isinstance(node, ast.FunctionDef):
        call = call if "Run[" in result else f"self._apply(lambda: {call})"
    else:
        call = f"self._call({call})"
    if "Run[" in result:
        call = f"self._handle({call})"
    if result == "None":
        return f"        {call}\n"
    return f"        made: {result} = {call}\n        return made\n"


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The parameters, passed on."""
    spec = node.args
    parts = [a.arg for a in spec.posonlyargs + spec.args if a.arg != "self"]
    if spec.vararg:
        parts.append(f"*{spec.vararg.arg}")
    parts += [f"{a.arg}={a.arg}" for a in spec.kwonlyargs]
    if spec.kwarg:
        parts.append(f"**{spec.kwarg.arg}")
    return ", ".join(parts)


def _formatted(text: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    here = ["--stdin-filename", str(TARGETS / "mirrored.py"), "-"]
    fixed = [*ruff, "check", "--select", "I,F401,UP", "--fix", "--quiet", *here]
    for command in (fixed, [*ruff, "format", "--quiet", *here]):
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode or not done.stdout:
            raise SystemExit(done.stderr + done.stdout + text)
        text = done.stdout
    return text


if __name__ == "__main__":
    for mirror in MIRRORS:
        (TARGETS / f"{mirror.module}.py").write_text(written(mirror), encoding="utf-8")
