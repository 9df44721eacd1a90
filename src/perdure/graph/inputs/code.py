"""Makes a validator of a plain schema, and lets none of what a document says become code.

fastjsonschema writes Python from a schema. That text is read as a syntax tree before it runs, and
anything in it that a validator has no need of is refused: what a document holds can be values in
that text and nothing else. It runs without builtins but for a few, and every call counts against
a budget, as a schema that refers to itself may ask for more than any machine can do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from perdure.graph.inputs.formats import Check
from perdure.graph.inputs.schema import PlainSchema

Validator = Callable[[Any], Any]

#: Calls of parts of a schema, for one input.
MAX_CALLS: Final = 1_000_000
_BUILTINS: Final[Mapping[str, Any]] = {
    one.__name__: one
    for one in (
        *(isinstance, len, set, str, sorted, enumerate, dict, list, tuple, int, float, bool),
        *(repr, hasattr, frozenset, type, locals),
    )
}
_ATTRIBUTES: Final = frozenset(
    {"keys", "items", "remove", "get", "append", "extend", "errors", "format", "is_integer"}
)
_NODES: Final = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Raise, ast.Expr),
    *(ast.Assign, ast.AugAssign, ast.If, ast.For, ast.Try, ast.ExceptHandler, ast.Pass, ast.Break),
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.keyword, ast.Constant),
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.List, ast.Tuple, ast.Dict, ast.Set),
    *(ast.GeneratorExp, ast.comprehension, ast.IfExp, ast.expr_context, ast.operator),
    *(ast.boolop, ast.unaryop, ast.cmpop),
)


class UnsafeCode(Exception):
    """The library wrote something that no validator needs."""


class TooMuch(BaseException):
    """The budget of calls is spent. No `except` of the validator's takes it for a verdict."""


def validator_of(plain: PlainSchema) -> Validator:
    """The function that raises fastjsonschema's exception for a value that does not fit.

    Raises ImportError without the extra, UnsafeCode, and whatever the library raises of a schema
    that it cannot use. The value is never changed.
    """
    import fastjsonschema

    schema = {"definitions": plain.parts, "$ref": f"#/definitions/{plain.main}"}
    text = fastjsonschema.compile_to_code(
        schema, handlers=_NO_HANDLERS, formats=plain.checks, use_default=False, fast_fail=False
    )
    tree = ast.parse(text)
    # Its imports are given to it below.
    tree.body = [one for one in tree.body if not isinstance(one, ast.Import | ast.ImportFrom)]
    check_tree(tree)
    names: dict[str, Any] = {
        "__builtins__": dict(_BUILTINS),
        "Decimal": Decimal,
        "JsonSchemaValueException": fastjsonschema.JsonSchemaValueException,
        "JsonSchemaValuesException": fastjsonschema.JsonSchemaValuesException,
    }
    exec(compile(tree, "<input schema>", "exec"), names)  # noqa: S102  checked above
    for name in [name for name in names if name.startswith("validate")]:
        names[name] = _counted(names[name])
    main = names["validate"]
    return lambda value: main(value, _Checks(plain.checks), "input")


class _Checks(dict[str, Check]):
    """The checks of text, which every part hands on, and the calls that are left."""

    left = MAX_CALLS


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def counted(data: Any, checks: _Checks, name: str) -> Any:
        checks.left -= 1
        if checks.left < 0:
            raise TooMuch
        return function(data, checks, name)

    return counted


def check_tree(tree: ast.Module) -> None:
    """Raise UnsafeCode unless the text does nothing but look at a value."""
    for one in tree.body:
        if not isinstance(one, ast.FunctionDef | ast.Assign):
            raise UnsafeCode(f"line {one.lineno}: {type(one).__name__}")
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise UnsafeCode(f"line {getattr(node, 'lineno', 0)}: {type(node).__name__}")
        if isinstance(node, ast.Attribute) and node.attr not in _ATTRIBUTES:
            raise UnsafeCode(f"line {node.lineno}: .{node.attr}")
        if isinstance(node, ast.Name) and node.id.startswith("_"):
            raise UnsafeCode(f"line {node.lineno}: {node.id}")
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            raise UnsafeCode(f"line {node.lineno}: a decorator")


def _nothing(uri: str) -> Any:
    raise ValueError("nothing outside the document is read")


_NO_HANDLERS: Final = dict.fromkeys(("", "http", "https", "file", "ftp", "data"), _nothing)
