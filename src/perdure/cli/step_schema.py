"""JSON Schemas of what steps take and give, as far as their annotations say it.

msgspec makes them of the types it knows, pydantic of its models; what neither can describe is
left open, `{}`, never guessed. Values of defaults are shown where JSON can hold them.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

import msgspec

from perdure.flow.binding import function_signature, parameters, required, resolved

if TYPE_CHECKING:
    from perdure.flow.step import Step

REF: Final = "#/$defs/{name}"
_STARS: Final = {
    inspect.Parameter.VAR_POSITIONAL: "values",
    inspect.Parameter.VAR_KEYWORD: "any name",
}


def summary(step: Step[..., Any]) -> str:
    """The first line of the function's documentation; "" where there is none."""
    text = inspect.getdoc(step.fn) or ""
    return text.strip().splitlines()[0] if text.strip() else ""


def parameters_json(step: Step[..., Any]) -> list[dict[str, Any]]:
    """The function's parameters: `name`, `type` as it is written, `required`, `default`. Of
    `*args` and `**kwargs` also `takes`."""
    told: list[dict[str, Any]] = []
    for p in function_signature(step.fn).parameters.values():
        one: dict[str, Any] = {"name": p.name, "type": _written(p.annotation)}
        if p.kind in _STARS:
            one["takes"] = _STARS[p.kind]
        one["required"] = required(p)
        if p.default is not p.empty:
            one["default"] = _plain(p.default)
        told.append(one)
    return told


def input_schema(step: Step[..., Any]) -> dict[str, Any]:
    """The schema of a TASK's input: an object with a value per parameter."""
    signature = function_signature(step.fn)
    properties: dict[str, Any] = {}
    needed: list[str] = []
    rest: Any = False
    definitions: dict[str, Any] = {}
    for bound, p in zip(parameters(step.fn, signature), signature.parameters.values(), strict=True):
        schema = _schema(bound.type, definitions)
        if p.kind is p.VAR_KEYWORD:
            rest = schema or True
            continue
        if p.kind is p.VAR_POSITIONAL:
            schema = {"type": "array", "items": schema}
        if p.default is not p.empty and _is_plain(p.default):
            schema = {**schema, "default": _plain(p.default)}
        properties[p.name] = schema
        if required(p):
            needed.append(p.name)
    made: dict[str, Any] = {"type": "object", "properties": properties}
    if needed:
        made["required"] = needed
    made["additionalProperties"] = rest
    if definitions:
        made["$defs"] = definitions
    return made


def output_schema(step: Step[..., Any]) -> dict[str, Any]:
    """The schema of what the step gives; {} where that is not said."""
    annotation = function_signature(step.fn).return_annotation
    if annotation is inspect.Signature.empty:
        return {}
    if annotation in (None, "None"):
        return {"type": "null"}
    namespace = getattr(inspect.unwrap(step.fn), "__globals__", {})
    definitions: dict[str, Any] = {}
    made = _schema(resolved(annotation, namespace), definitions)
    return {**made, "$defs": definitions} if definitions else made


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type, what it refers to put among the definitions; {} = anything."""
    if kind is None:
        return {}
    try:
        (made,), found = msgspec.json.schema_components(
            [kind], schema_hook=_of_pydantic, ref_template=REF
        )
    except Exception:  # also what a hook or a broken annotation raises
        return _of_model(kind, definitions)
    definitions.update(found)
    return dict(made)


def _of_model(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    try:
        made = _of_pydantic(kind)
    except NotImplementedError:
        return {}
    definitions.update(made.pop("$defs", {}))
    return made


def _of_pydantic(kind: Any) -> dict[str, Any]:
    make = getattr(kind, "model_json_schema", None)
    if make is None:
        raise NotImplementedError
    made: dict[str, Any] = make(ref_template=REF.replace("{name}", "{model}"))
    return made


def _written(annotation: Any) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _is_plain(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except Exception:  # whatever an object of the user's does
        return False
    return True


def _plain(value: Any) -> Any:
    """The value as JSON has it; its text where JSON has none."""
    return msgspec.to_builtins(value) if _is_plain(value) else repr(value)
