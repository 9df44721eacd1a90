"""Packing: the arguments of a step's call as one JSON value, and back.

A function of one parameter takes its value as it is; of several, an object by name, so that one
more with a default breaks nothing that is recorded. With the second parameter of all, what was a
value becomes an object: a call with the first argument alone has both forms, and which one is
recorded is told by comparing it with what the code asks for, never by how it looks. Unlike the
binding of graph documents nothing is guessed here: what was packed is unpacked to the same
arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import msgspec

from perdure.flow.binding import (
    Arguments,
    Parameter,
    converted,
    function_signature,
    parameters,
)
from perdure.model.errors import InvalidRequest

_POSITIONAL: Final = inspect.Parameter.POSITIONAL_ONLY
_REST: Final = inspect.Parameter.VAR_POSITIONAL
_EXTRA: Final = inspect.Parameter.VAR_KEYWORD
_KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY

#: What a call without arguments is packed to.
NOTHING: Final = msgspec.UNSET


class Packer:
    """Of one function, made at its first call inside a workflow."""

    __slots__ = ("_all", "_names", "_otherwise", "_plain", "_signature", "_single", "_step")

    def __init__(self, step: str, function: Callable[..., Any]) -> None:
        self._step = step
        self._signature = function_signature(function)
        self._all = parameters(function, self._signature)
        kinds = {p.kind for p in self._all}
        #: No star, nothing by position or keyword only: positions are names.
        self._plain = not kinds & {_POSITIONAL, _REST, _EXTRA, _KEYWORD}
        self._names = tuple(p.name for p in self._all)
        self._single = self._plain and len(self._all) == 1
        self._otherwise = False

    def otherwise(self) -> Packer:
        """The same, which unpacks the other form of calls with one argument (see `other`)."""
        copy = object.__new__(Packer)
        for name in Packer.__slots__:
            setattr(copy, name, getattr(self, name))
        copy._otherwise = True
        return copy

    def other(self, value: Any) -> Any:
        """The form that a packed value had, or will have, while the function has one parameter
        or several, the other way round; NOTHING where it has no other."""
        first = self._all[0]
        if self._single:
            return {first.name: value}
        lone = first.kind not in (_REST, _EXTRA) and isinstance(value, dict)
        return value[first.name] if lone and [*value] == [first.name] else NOTHING

    def pack(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value that stands for these arguments. Raises TypeError as the call itself would."""
        if self._single and len(args) == 1 and not kwargs:
            return args[0]
        if not self._all and not args and not kwargs:
            return NOTHING
        if self._plain and not kwargs and len(args) == len(self._all):
            return dict(zip(self._names, args, strict=True))
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"step {self._step}: {error}") from None
        given = dict(bound.arguments)
        if self._single:
            return given[self._names[0]] if given else NOTHING
        for parameter in self._all:
            if parameter.kind is _EXTRA:
                given.update(given.pop(parameter.name, {}))
        return given or NOTHING

    def unpack(self, value: Any) -> Arguments:
        """The arguments a packed value stands for. Raises InvalidRequest."""
        if self._otherwise:
            value = value[self._all[0].name] if self._single else {self._all[0].name: value}
        if value is NOTHING:
            if not self._all:
                return (), {}
            given: dict[str, Any] = {}
        elif self._single:
            only = self._all[0]
            return (self._converted(only, value),), {}
        elif isinstance(value, dict):
            given = dict(value)
        else:
            raise InvalidRequest(f"step {self._step}: its recorded arguments are not an object")
        args: list[Any] = []
        named: dict[str, Any] = {}
        with_rest = any(p.kind is _REST and given.get(p.name) for p in self._all)
        for parameter in self._all:
            if parameter.kind is _EXTRA:
                named.update({k: self._converted(parameter, v) for k, v in given.items()})
                given = {}
            elif parameter.kind is _REST:
                args += [self._converted(parameter, v) for v in given.pop(parameter.name, ())]
            elif parameter.name in given:
                converted = self._converted(parameter, given.pop(parameter.name))
                if parameter.kind is _POSITIONAL or (with_rest and parameter.kind is not _KEYWORD):
                    args.append(converted)
                else:
                    named[parameter.name] = converted
            elif parameter.required:
                raise InvalidRequest(
                    f"step {self._step} has a parameter {parameter.name!r} that its recorded call "
                    "does not: give it a default"
                )
        if given:
            unknown = ", ".join(sorted(given))
            raise InvalidRequest(
                f"step {self._step} was called with {unknown}, which its function does not have "
                "any more: keep the parameter while such runs are under way"
            )
        return tuple(args), named

    def _converted(self, parameter: Parameter, value: Any) -> Any:
        return converted(self._step, parameter, value)
