"""Binding: the arguments of a step called by name, made from one JSON value.

Compiled once per step at its first use. Refuses what does not fit before the step's code runs,
and says what would fit; no message holds a value of the input, only names and types.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, NoReturn

import msgspec
from msgspec import UNSET

from perdure.flow.shapes import convert, fault, readable
from perdure.model.errors import InvalidRequest
from perdure.model.guesses import did_you_mean
from perdure.model.json_words import json_kind

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_EMPTY: Final = inspect.Parameter.empty
_MISSING: Final = object()
_NO_ARGUMENTS: Final[tuple[Any, ...]] = ()


class Parameter(msgspec.Struct, frozen=True):
    """One parameter; `type` None = any JSON value passes as it is."""

    name: str
    kind: Any
    required: bool
    type: Any = None
    default: Any = None


class Binder:
    """Turns the input of a TASK node into the arguments of one function.

    The rule, in order: no input = no arguments. An object whose keys are all names of parameters
    and that has every required one is bound *by name*. Otherwise a function of exactly one
    parameter takes the input *as its value*. Anything else is InvalidRequest.
    """

    __slots__ = ("_extra", "_plain", "_rest", "_undemanding", "known", "named", "step", "written")

    def __init__(self, step: str, function: Callable[..., Any]) -> None:
        signature = function_signature(function)
        self.step = step
        self.written = written(signature)
        self.named: list[Parameter] = []
        self._rest: Parameter | None = None
        self._extra: Parameter | None = None
        for parameter in parameters(function, signature):
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                self._rest = parameter
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._extra = parameter
            else:
                self.named.append(parameter)
        self.known = {p.name for p in self.named}
        #: No `*args`, `**kwargs` or positional-only parameter: everything goes by keyword.
        self._plain = not (self._rest or self._extra) and all(
            p.kind is not inspect.Parameter.POSITIONAL_ONLY for p in self.named
        )
        #: It can do without any input.
        self._undemanding = self._plain and not any(p.required for p in self.named)

    def bind(self, input: Any = UNSET) -> Arguments:
        """Arguments for the function. Raises InvalidRequest."""
        if type(input) is dict and self._plain and input.keys() <= self.known:
            bound: dict[str, Any] = {}
            for parameter in self.named:
                value = input.get(parameter.name, _MISSING)
                if value is _MISSING:
                    if parameter.required:
                        break
                elif parameter.type is None or type(value) is parameter.type:
                    bound[parameter.name] = value
                else:
                    bound[parameter.name] = self._converted(parameter, value)
            else:
                return _NO_ARGUMENTS, bound
        elif input is UNSET and self._undemanding:
            return _NO_ARGUMENTS, {}
        return self._bind_otherwise(input)

    def _bind_otherwise(self, input: Any) -> Arguments:
        given: Mapping[str, Any]
        if input is UNSET:
            given = {}
        elif isinstance(input, dict) and self.fits(input):
            given = input
        elif self.lone is not None:
            return self._alone(self.lone, input)
        else:
            self._refuse(input)
        if any(p.required and p.name not in given for p in self.named):
            self._refuse(given)
        return self._spread(given)

    @property
    def lone(self) -> Parameter | None:
        """The parameter of a function that has no other."""
        return self.named[0] if len(self.named) == 1 and not (self._rest or self._extra) else None

    @property
    def takes_any(self) -> bool:
        """Whether there is a `**` parameter."""
        return self._extra is not None

    def _alone(self, parameter: Parameter, input: Any) -> Arguments:
        """The input as the value of the only parameter."""
        try:
            value = self._converted(parameter, input)
        except InvalidRequest:
            if isinstance(input, dict) and input and parameter.name not in input:
                self._refuse(input)  # a name was meant, and it is not right
            raise
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            return (value,), {}
        return _NO_ARGUMENTS, {parameter.name: value}

    def fits(self, given: Mapping[str, Any]) -> bool:
        """Whether an object is bound by name: all its keys are names, none that must be there
        is missing."""
        known = self.known | ({self._rest.name} if self._rest else set())
        return (bool(self._extra) or given.keys() <= known) and all(
            p.name in given for p in self.named if p.required
        )

    def _spread(self, given: Mapping[str, Any]) -> Arguments:
        rest = given.get(self._rest.name, ()) if self._rest else ()
        if not isinstance(rest, (list, tuple)):
            self._refuse(given)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in self.named:
            # Values for `*args` need everything before them to be positional too.
            positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY or (
                rest and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
            )
            if parameter.name in given:
                value = self._converted(parameter, given[parameter.name])
                if positional:
                    args.append(value)
                else:
                    kwargs[parameter.name] = value
            elif positional:
                args.append(parameter.default)
        if self._rest:
            args += [self._converted(self._rest, value) for value in rest]
        if self._extra:
            own = self.known | ({self._rest.name} if self._rest else set())
            for name in given.keys() - own:
                kwargs[name] = self._converted(self._extra, given[name])
        return tuple(args), kwargs

    def _converted(self, parameter: Parameter, value: Any) -> Any:
        return converted(self.step, parameter, value)

    def _refuse(self, input: Any) -> NoReturn:
        raise InvalidRequest(
            f"step {self.step} takes {self.written}, but {self._mismatch(input)}: "
            "give `input` an object with one value per parameter"
        )

    def _mismatch(self, input: Any) -> str:
        if not isinstance(input, Mapping):
            return f"the input is {json_kind(input)}"
        said = []
        missing = [p.name for p in self.named if p.required and p.name not in input]
        if missing:
            said.append(f"the input lacks {', '.join(missing)}")
        unknown = sorted(str(name) for name in input if name not in self.known)
        if unknown and not self._extra:
            near = did_you_mean(unknown[0], [n for n in self.known if n not in input])
            meant = f" ({near.rstrip('?')})" if near.startswith("did") else ""
            said.append(f"it has no parameter {', '.join(unknown)}{meant}")
        return " and ".join(said) or "a value for its `*` parameter must be an array"


def converted(step: str, parameter: Parameter, value: Any) -> Any:
    """A JSON value as the type of a step's parameter. Raises InvalidRequest."""
    if parameter.type is None or type(value) is parameter.type:
        return value
    try:
        return convert(value, parameter.type)
    except msgspec.ValidationError as error:
        try:
            return convert(whole_numbers(value), parameter.type)
        except Exception:
            raise InvalidRequest(
                f"step {step}, parameter {parameter.name!r}: {fault(error)}"
            ) from None


def function_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature, its annotations unresolved where Python resolves them lazily."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def parameters(function: Callable[..., Any], signature: inspect.Signature) -> list[Parameter]:
    """The function's parameters with the types their values are converted to."""
    namespace = getattr(inspect.unwrap(function), "__globals__", {})
    return [
        Parameter(p.name, p.kind, required(p), resolved(p.annotation, namespace), p.default)
        for p in signature.parameters.values()
    ]


def required(parameter: inspect.Parameter) -> bool:
    """Whether a call must give this parameter."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return parameter.default is _EMPTY and parameter.kind not in variable


def resolved(annotation: Any, namespace: dict[str, Any]) -> Any:
    """The type an annotation means, or None where any value passes.

    None also for what cannot be resolved (a name local to a function) and for types that no JSON
    value can be checked against: the step then gets the plain value.
    """
    if annotation in (_EMPTY, Any):
        return None
    try:
        holder = SimpleNamespace(__annotations__={"it": annotation})
        kind = typing.get_type_hints(holder, namespace, include_extras=True)["it"]
        if kind is Any:
            return None
        return readable(kind)
    except Exception:
        return None


def whole_numbers(value: Any) -> Any:
    """The value with 2.0 as 2 throughout: JSON has one kind of number, an `int` takes either."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return value


def written(signature: inspect.Signature) -> str:
    """`(order: Order, note: str = ...)`: the parameters without the values of defaults."""
    stars: dict[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    shown = []
    for p in signature.parameters.values():
        text = f"{stars.get(p.kind, '')}{p.name}"
        if p.annotation is not _EMPTY:
            kind = p.annotation
            text += f": {kind if isinstance(kind, str) else inspect.formatannotation(kind)}"
        shown.append(text if p.default is _EMPTY else f"{text} = ...")
    return f"({', '.join(shown)})" if shown else "no arguments"
