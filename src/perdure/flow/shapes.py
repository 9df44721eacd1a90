"""Shapes: types that msgspec cannot read by itself, made readable by stand-ins.

msgspec refuses unions of several records without tags (`Approve | Reject`), and any record with
such a field. Here a value is matched with the record whose fields it has; one that would fit
several is refused, never guessed.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin

import msgspec

Read: TypeAlias = Callable[[Any], Any]
_Memo: TypeAlias = dict[Any, Any]

_NONE: Final = type(None)
#: Types that codecs of users say they read (see perdure.flow.codec): a hook for the rest.
READ_BY_CODECS: Final[set[Any]] = set()
_PATH: Final = re.compile(r" - at `\$([^`]*)`")


class _AnyInstance(type):
    """What a stand-in reads is of another class, and msgspec is to take it."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class StandIn(metaclass=_AnyInstance):
    """A type in the place of one that msgspec cannot read; `read` makes the value."""

    read: Read
    #: The types inside, each with where it stands.
    parts: Iterable[tuple[str, Any]] = ()


class _Field(msgspec.Struct, frozen=True):
    """One field of a record: its name in code, its name in JSON, whether it must be there."""

    name: str
    key: str
    required: bool
    type: Any


class _Record(msgspec.Struct, frozen=True):
    """A record as the reader of a union sees it."""

    kind: Any
    keys: frozenset[str]
    required: frozenset[str]
    open: bool


_Pair: TypeAlias = tuple[_Record, Any]


def readable(kind: Any) -> Any:
    """The type itself where msgspec can read it, else one with stand-ins. Raises what msgspec
    raises for what cannot be read at all: TypeError, NameError."""
    if _is_native(kind):
        return kind
    made = _made_readable(kind, {})
    msgspec.json.Decoder(made, dec_hook=from_json)
    return made


def from_json(kind: type[Any], value: Any) -> Any:
    """Hook for types msgspec does not know: stand-ins, and pydantic models, by their own
    validation."""
    if type(kind) is _AnyInstance:
        return kind.read(value)
    if kind is object:
        return value  # what strict code says in place of Any
    if kind in READ_BY_CODECS and isinstance(value, kind):
        return value  # the codec has made it already
    validate = getattr(kind, "model_validate", None)
    if validate is None or isinstance(value, kind):
        raise ValueError(f"a {kind.__name__} cannot be made from JSON")
    try:
        return validate(value)
    except ValueError as error:
        raise ValueError(_without_values(error)) from None


def convert(value: Any, kind: Any) -> Any:
    """The JSON value as that type. Raises msgspec.ValidationError, and what a type's own
    validation raises."""
    return msgspec.convert(value, kind, str_keys=True, dec_hook=from_json)


def fault(error: Exception) -> str:
    """What is wrong, with one path from the outside in: each reader adds where it stood."""
    text = str(error)
    paths = _PATH.findall(text)
    if len(paths) < 2:
        return text
    return f"{_PATH.sub('', text)} - at `${''.join(reversed(paths))}`"


def _without_values(error: ValueError) -> str:
    """What a pydantic error says, less the values it quotes."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return f"{type(error).__name__} in validation"
    lines = [f"{'.'.join(map(str, e['loc'])) or '$'}: {e['msg']}" for e in errors()]
    return "; ".join(lines)


def _is_native(kind: Any) -> bool:
    try:
        msgspec.json.Decoder(kind, dec_hook=from_json)
    except TypeError:
        return False
    return True


def _made_readable(kind: Any, memo: _Memo) -> Any:
    if kind in memo:
        return memo[kind]
    if _is_native(kind):
        return kind
    for name in ("__value__", "__supertype__"):  # `type X = A | B`, NewType
        if hasattr(kind, name):
            return _made_readable(getattr(kind, name), memo)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return Annotated[(_made_readable(arguments[0], memo), *arguments[1:])]
    if origin in (Union, types.UnionType):
        return _union(kind, arguments, memo)
    if origin is not None and _fields(origin) is None:
        return origin[tuple(a if a is ... else _made_readable(a, memo) for a in arguments)]
    fields = _fields(kind)
    if fields is None:
        return kind  # msgspec says what is wrong with it
    return _record(kind, fields, memo)


# ---------------------------------------------------------------------------------------- unions


def _union(kind: Any, members: tuple[Any, ...], memo: _Memo) -> Any:
    """A stand-in for a union of records that carry no tag."""
    made = memo[kind] = _stand_in(" | ".join(map(_name, members)))
    records: list[_Pair] = []
    others: list[Any] = []
    for member in members:
        fields = _fields(member)
        if fields is None:
            others.append(_made_readable(member, memo))
        else:
            records.append((_described(member, fields), _made_readable(member, memo)))
    plain = _together(others)
    made.parts = [("", reader) for _, reader in records] + [("", one) for one in others]
    made.read = staticmethod(lambda value: _matched(value, records, plain, made.__name__))
    return made


def _together(members: list[Any]) -> list[Any]:
    """What is no record, as one union where msgspec takes it."""
    if len(members) < 2:
        return members
    whole: Any = functools.reduce(operator.or_, members)
    return [whole] if _is_native(whole) else members


def _matched(value: Any, records: Iterable[_Pair], plain: Iterable[Any], shown: str) -> Any:
    """The value as the one member of the union that it fits. Raises ValueError."""
    found: list[tuple[str, Any]] = []
    wrong: list[str] = []
    for record, reader in _by_keys(value, list(records)) if isinstance(value, dict) else ():
        try:
            found.append((_name(record.kind), convert(value, reader)))
        except (msgspec.ValidationError, ValueError, TypeError) as error:
            wrong.append(str(error))
    for kind in plain:
        with suppress(msgspec.ValidationError, ValueError, TypeError):
            found.append((_name(kind), convert(value, kind)))
    if len(found) == 1:
        return found[0][1]
    if found:
        both = " and ".join(name for name, _ in found)
        raise ValueError(f"it fits {both}: give them different fields, or msgspec Structs a tag")
    if len(wrong) == 1:
        raise ValueError(wrong[0])
    raise ValueError(f"Expected `{shown}`, got {_got(value)}")


def _by_keys(
    value: dict[str, Any], records: list[tuple[_Record, Any]]
) -> list[tuple[_Record, Any]]:
    """The records with exactly these fields; else those that could have been written so."""
    keys = value.keys()
    exact = [one for one in records if keys == one[0].keys]
    return exact or [
        one for one in records if one[0].required <= keys and (one[0].open or keys <= one[0].keys)
    ]


def _described(kind: Any, fields: list[_Field]) -> _Record:
    keys = {f.key for f in fields}
    required = {f.key for f in fields if f.required}
    tag = getattr(getattr(kind, "__struct_config__", None), "tag_field", None)
    if tag is not None:
        keys.add(tag)
        required.add(tag)
    return _Record(kind, frozenset(keys), frozenset(required), False)


def _got(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(str, value)) or 'no fields'}"
    return f"`{'null' if value is None else type(value).__name__}`"


# --------------------------------------------------------------------------------------- records


def _record(kind: Any, fields: list[_Field], memo: _Memo) -> Any:
    """A stand-in for a record with a field that msgspec cannot read."""
    made = memo[kind] = _stand_in(_name(kind))
    readers = [(f, _made_readable(f.type, memo)) for f in fields]
    made.parts = [(f".{f.name}", reader) for f, reader in readers]

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(  # noqa: TRY004  # what msgspec takes of a hook
                f"Expected `{made.__name__}`, got {_got(value)}"
            )
        given: dict[str, Any] = {}
        for field, reader in readers:
            if field.key in value:
                given[field.name] = _at(field.key, value[field.key], reader)
            elif field.required:
                raise ValueError(f"Object missing required field `{field.key}`")
        return kind(**given)

    made.read = staticmethod(read)
    return made


def _at(key: str, value: Any, reader: Any) -> Any:
    try:
        return convert(value, reader)
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise ValueError(f"{error} - at `$.{key}`") from None


@functools.cache
def _fields(kind: Any) -> list[_Field] | None:
    """The fields of a class of records; None for what is none."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, msgspec.Struct):
        if kind.__struct_config__.array_like:
            return None
        return [
            _Field(f.name, f.encode_name, f.required, f.type) for f in msgspec.structs.fields(kind)
        ]
    models: Mapping[str, Any] | None = getattr(kind, "model_fields", None)
    if models is not None:
        return [_Field(n, f.alias or n, f.is_required(), f.annotation) for n, f in models.items()]
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return [
            _Field(f.name, f.name, _is_required(f), hints[f.name])
            for f in dataclasses.fields(kind)
            if f.init
        ]
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind)
        needed: frozenset[str] = kind.__required_keys__  # type: ignore[attr-defined]
        return [_Field(name, name, name in needed, hint) for name, hint in hints.items()]
    return None


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _stand_in(name: str) -> Any:
    return _AnyInstance(name, (StandIn,), {})


def _name(kind: Any) -> str:
    return "None" if kind is _NONE else getattr(kind, "__name__", None) or str(kind)
