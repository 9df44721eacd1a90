"""Legible: what is annotated on steps, workflows and mailboxes can be read back.

A type whose values can be recorded by nobody, or read back by nobody, would fail only after the
effects before it have happened. Here it is refused where it is written. What a codec of a user's
says that it reads is left to that codec; what cannot be resolved yet is looked at again when an
engine is given it.
"""

from __future__ import annotations

import inspect
import pathlib
import typing
from collections import abc
from collections.abc import Callable, Iterator
from types import CodeType, SimpleNamespace
from typing import Any, Final

import msgspec
from msgspec import inspect as types

from perdure.flow.binding import function_signature
from perdure.flow.shapes import READ_BY_CODECS, StandIn, readable
from perdure.model.errors import DefinitionError
from perdure.model.names import type_name
from perdure.model.step_context import StepContext

_EMPTY: Final = inspect.Parameter.empty

RETURNED: Final = "its return value"
#: What is written in the place of types that are often meant, most special first.
_INSTEAD: Final[tuple[tuple[Any, str], ...]] = (
    (pathlib.PurePath, "use str, and make the path of it where it is used"),
    (type, "use its name as str"),
    (BaseException, "use str, or raise it"),
    (abc.Callable, "use the name of what is to be called as str"),
    (abc.AsyncIterable, "use list[...]: a value is recorded whole"),
    (abc.Awaitable, "await it, and use what it gives"),
    (abc.Iterable, "use list[...]: a value is recorded whole"),
)
_RECORD: Final = "use JSON's own types, a dataclass, a msgspec.Struct or a pydantic model"
_CODEC: Final = "class Mine(Codec, reads=[{0}])"
_GIVE_IT: Final = "give it the one that its runs are recorded with, codec=..."
_OBJECT: Final = "; what is no value a step asks for, by current_step().resource({0})"
_CONTAINERS: Final = (
    types.ListType, types.VarTupleType, types.TupleType, types.DictType, types.SetType,
    types.FrozenSetType, types.StructType, types.DataclassType, types.TypedDictType,
    types.NamedTupleType, types.CustomType,
)  # fmt: skip

_NO_HASH: Final = (
    types.ListType, types.DictType, types.SetType, types.TypedDictType, types.ByteArrayType,
)  # fmt: skip


def check_function(function: Callable[..., Any], skip: int = 0, *, codec: bool = True) -> bool:
    """Whether all types of a function's parameters and of what it returns are known by now.
    `skip`: how many of the first parameters are no values. `codec`: whether there may be a codec
    of a user's. Raises DefinitionError for one that can never be read back, and for a return value
    that can never be recorded."""
    if not inspect.isfunction(function):
        return True  # refused elsewhere
    signature = function_signature(function)
    # One with a default need not be recorded: what cannot be is refused where it is passed.
    annotated = [
        (f"parameter {p.name!r}", p.annotation)
        for p in [*signature.parameters.values()][skip:]
        if p.default is _EMPTY
    ]
    annotated.append((RETURNED, signature.return_annotation))
    namespace = getattr(inspect.unwrap(function), "__globals__", {})
    known, faults = True, []
    for what, annotation in annotated:
        if annotation in (_EMPTY, Any):
            continue
        try:
            kind = _resolved(annotation, namespace)
            why = fault(kind, codec=codec)
            unrecorded = "" if why or what != RETURNED else _key_fault(kind)
        except NameError:
            known = False
            continue
        if why:
            faults.append(f"{what} can never be read back from what is recorded: {why}")
        elif unrecorded:
            faults.append(f"{what} can never be recorded: {unrecorded}")
    if faults:
        raise DefinitionError("; ".join(faults), faults)
    return known


def globals_of(function: Any) -> Iterator[Any]:
    """What a function's code names of its module's top level."""
    codes = [getattr(function, "__code__", None)]
    namespace = getattr(function, "__globals__", {})
    while codes:
        code = codes.pop()
        if isinstance(code, CodeType):
            yield from (namespace[name] for name in code.co_names if name in namespace)
            codes += code.co_consts


def fault(kind: Any, *, codec: bool = True) -> str:
    """Why values of a type can never be read back, and what to use; "" where they can, or where
    nothing is checked. `codec`: see check_function. Raises NameError for one that cannot be
    resolved yet."""
    try:
        made = readable(kind)
    except NameError:
        raise
    except Exception:
        return ""  # no type that a value is held against: it stays what JSON makes of it
    return next(_faults(made, "", codec), "")


def _resolved(annotation: Any, namespace: dict[str, Any]) -> Any:
    """The type that an annotation means. Raises NameError; Any where it means none."""
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, namespace, include_extras=True)["it"]
    except NameError:
        raise
    except Exception:
        return Any


def _faults(kind: Any, path: str, codec: bool) -> Iterator[str]:
    try:
        whole = types.type_info(kind)
    except TypeError:
        return
    yield from _walk(whole, path, codec, set())


def _walk(info: types.Type, path: str, codec: bool, seen: set[int]) -> Iterator[str]:
    if id(info) in seen:
        return
    seen.add(id(info))
    if isinstance(info, types.CustomType):
        yield from _of_class(info.cls, path, codec)
        return
    if isinstance(info, types.StructType):
        cls = typing.get_origin(info.cls) or info.cls
        if issubclass(cls, StepContext):
            yield from _of_class(cls, path, codec)
            return
    if isinstance(info, types.SetType | types.FrozenSetType):
        if name := _unhashable(info.item_type):
            yield (
                f"a set of {name}{_at(path)}, which has no hash: use list[...], or a frozen record"
            )
            return
    elif isinstance(info, types.DictType) and isinstance(info.key_type, _CONTAINERS):
        name = _name(info.key_type)
        yield f"a dict whose keys are {name}{_at(path)}: keys of JSON objects are text, use str"
        return
    for name, part in _parts(info):
        yield from _walk(part, path + name, codec, seen)


def _of_class(cls: type[Any], path: str, codec: bool) -> Iterator[str]:
    """Of a class that msgspec does not know."""
    if isinstance(cls, type(StandIn)):
        for name, part in cls.parts:
            yield from _faults(part, path + name, codec)
        return
    if cls is object or cls is msgspec.UnsetType or hasattr(cls, "model_validate"):
        return
    name = type_name(cls)
    if cls in READ_BY_CODECS:
        if not codec:
            yield f"only a codec reads {name}{_at(path)}, and this engine has none: {_GIVE_IT}"
        return
    instead = next((said for base, said in _INSTEAD if _is_a(cls, base)), "")
    if cls.__module__.startswith("perdure."):
        instead = "it is no value: a workflow has its Context first, a step asks current_step()"
    elif not instead or pathlib.PurePath in cls.__mro__:
        instead = f"{instead or _RECORD}; or say that a codec of yours reads it, {_CODEC}{_OBJECT}"
    yield (
        f"nothing says how one of {name}{_at(path)} is made from JSON: "
        f"{instead.format(cls.__name__)}"
    )


def _is_a(cls: type[Any], base: Any) -> bool:
    # An ABC says yes to whatever has its methods: a class of a user's is callable for no reason.
    return base in cls.__mro__


def _parts(info: types.Type) -> Iterator[tuple[str, types.Type]]:
    """The types inside one, each with where it stands."""
    for attribute in info.__struct_fields__:
        value = getattr(info, attribute)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, types.Field):
                yield f".{one.name}", one.type
            elif isinstance(one, types.Type):
                yield "" if isinstance(info, types.UnionType | types.Metadata) else "[]", one


def _key_fault(kind: Any) -> str:
    """Why a value of a type that is read well can never be recorded: only text is a key there.
    JSON that others wrote may well have keys that are read as numbers."""
    try:
        whole = types.type_info(readable(kind))
    except TypeError:
        return ""
    return next(_number_keys(whole, "", set()), "")


def _number_keys(info: types.Type, path: str, seen: set[int]) -> Iterator[str]:
    if id(info) in seen:
        return
    seen.add(id(info))
    if isinstance(info, types.DictType) and (name := _no_text(info.key_type)):
        yield f"a dict whose keys are {name}{_at(path)}: keys of JSON objects are text, use str"
        return
    if isinstance(info, types.CustomType) and isinstance(info.cls, type(StandIn)):
        for name, part in info.cls.parts:
            yield from _number_keys(types.type_info(part), path + name, seen)
        return
    for name, part in _parts(info):
        yield from _number_keys(part, path + name, seen)


def _no_text(info: types.Type) -> str:
    """The name of the type in that of a key whose values are no text; nothing where all are."""
    if isinstance(info, types.IntType | types.FloatType | types.BoolType | types.NoneType):
        return _name(info)
    if isinstance(info, types.EnumType | types.LiteralType):
        values = info.values if isinstance(info, types.LiteralType) else [e.value for e in info.cls]
        return "" if all(isinstance(value, str) for value in values) else _name(info)
    if isinstance(info, types.UnionType | types.Metadata):
        return next(filter(None, (_no_text(part) for _, part in _parts(info))), "")
    return ""


def _unhashable(info: types.Type) -> str:
    """The name of the type in it that has no hash, or nothing."""
    if isinstance(info, types.StructType | types.DataclassType):
        return _name(info) if getattr(info.cls, "__hash__", None) is None else ""
    if isinstance(info, _NO_HASH):
        return _name(info)
    if isinstance(info, types.UnionType | types.TupleType | types.VarTupleType | types.Metadata):
        return next(filter(None, (_unhashable(part) for _, part in _parts(info))), "")
    return ""


def _name(info: types.Type) -> str:
    cls = getattr(info, "cls", None)
    return type(info).__name__.removesuffix("Type").lower() if cls is None else str(cls.__name__)


def _at(path: str) -> str:
    return f" (at `${path}`)" if path else ""
