"""Fitting: what a step would refuse in an input of which only a part is known yet.

The same rule as of Binder, asked before a run: a name that no parameter has, a parameter that
gets nothing, a value that is plainly of another kind. Where a value is not known nothing is said,
so that whatever is told here fails for sure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from perdure.flow.binding import Binder, Parameter, whole_numbers
from perdure.flow.shapes import convert
from perdure.model.guesses import did_you_mean
from perdure.model.json_words import json_kind
from perdure.model.unknown import UNKNOWN, UNKNOWN_TEXT, Unknown, holds_unknown

#: Where below the input, what is wrong, what to do.
Misfit = tuple[tuple[str, ...], str, str]

_PLACE: Final = re.compile(r" - at `(?P<path>\$[^`]*)`$")
_KIND: Final = re.compile(r"Expected `[^`]+`, got `str`")


def misfits(binder: Binder, input: Any) -> list[Misfit]:
    """All that is wrong with a call; [] where it is right, or may be."""
    if isinstance(input, Unknown):
        return []
    given: Any = {} if input is UNSET else input
    if isinstance(given, dict) and binder.fits(given):
        return list(_values(binder, given))
    if input is not UNSET and binder.lone is not None:
        wrong = _wrong(binder.lone, input)
        if not wrong:
            return []
        if not isinstance(input, dict) or not input or _has_field(binder.lone.type, input):
            return [((), _about(binder, binder.lone, wrong), _takes(binder))]
    if not isinstance(given, dict):
        message = f"step {binder.step} takes its parameters by name, not {json_kind(given)}"
        return [((), message, _takes(binder))]
    return list(_names(binder, given))


def _has_field(kind: Any, input: dict[str, Any]) -> bool:
    """Whether the keys of an object are fields of a record: it was meant as that record."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return False
    return any(field.encode_name in input for field in msgspec.structs.fields(kind))


def _about(binder: Binder, parameter: Parameter, wrong: str) -> str:
    return f"step {binder.step}, parameter {parameter.name!r}: {wrong}"


def _takes(binder: Binder) -> str:
    return f"it takes {binder.written}"


def _names(binder: Binder, given: Mapping[str, Any]) -> Iterator[Misfit]:
    """Names that are too many, and those that are missing."""
    names = [p.name for p in binder.named]
    meant: set[str] = set()
    for key in given:
        if key in binder.known or binder.takes_any:
            continue
        hint = did_you_mean(str(key), [n for n in names if n not in given])
        near = re.fullmatch(r'did you mean "(.+)"\?', hint)
        if near:
            meant.add(near[1])
        yield (
            (str(key),),
            f'step {binder.step} has no parameter "{key}"',
            hint if near else _takes(binder),
        )
    for parameter in binder.named:
        if parameter.required and parameter.name not in given and parameter.name not in meant:
            message = f'step {binder.step} needs its parameter "{parameter.name}"'
            yield (), message, _takes(binder)


def _values(binder: Binder, given: Mapping[str, Any]) -> Iterator[Misfit]:
    for parameter in binder.named:
        if parameter.name in given:
            wrong = _wrong(parameter, given[parameter.name])
            if wrong:
                yield (parameter.name,), _about(binder, parameter, wrong), _takes(binder)


def _wrong(parameter: Parameter, value: Any) -> str:
    """Why a value cannot become the parameter's type; "" if it can, or may."""
    if parameter.type is None or value is UNKNOWN:
        return ""
    if value is UNKNOWN_TEXT:
        said = _said("", parameter)
        return said if _KIND.fullmatch(said) else ""
    said = _said(value, parameter)
    if not said or not holds_unknown(value):
        return said
    missing = _missing(value, parameter.type)
    if missing:
        return missing
    # With a part that is not known, what is said of another place is said for sure.
    place = _PLACE.search(said)
    if place is None:
        return said if isinstance(value, (dict, list)) and said.startswith("Expected `") else ""
    at = place["path"]
    return "" if _is_open(value, at) else said


def _missing(value: Any, kind: Any) -> str:
    """A field that a record must have: keys are known even where values are not."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return ""
    if not isinstance(value, dict) or kind.__struct_config__.array_like:
        return ""
    for field in msgspec.structs.fields(kind):
        if field.required and field.encode_name not in value:
            return f"Object missing required field `{field.encode_name}`"
    return ""


def _said(value: Any, parameter: Parameter) -> str:
    try:
        convert(value, parameter.type)
    except msgspec.ValidationError as error:
        try:
            convert(whole_numbers(value), parameter.type)
        except Exception:
            return str(error)
    except Exception:
        return ""
    return ""


_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def _is_open(value: Any, path: str) -> bool:
    """Whether what a message is about may be something else in a run."""
    at: Any = value
    for key, index in _STEP.findall(path[1:]):
        if key == "..." or index == "...":
            return True
        try:
            at = at[key] if key else at[int(index)]
        except (KeyError, IndexError, TypeError):
            return True
    # The kind of an object or list is known, what is in it is not.
    return isinstance(at, Unknown)
