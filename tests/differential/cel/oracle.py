"""Evaluates expressions with the official CEL binding: a script, run by an interpreter that has it.

Reads one JSON object from standard input, {"variables": {…}, "expressions": [{"text", "data"}]},
and writes one list of outcomes: ["value", v] with v in the form of `told`, or ["error", message].
It imports nothing of the project, so the two never share an interpreter.
"""

from __future__ import annotations

import datetime
import json
import sys
from typing import Any

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)  # noqa: UP017
MICROSECOND = datetime.timedelta(microseconds=1)


def told(value: Any) -> Any:
    """A value as JSON that keeps kinds apart and does not depend on the order of maps."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return {"int": str(int(value))}
    if isinstance(value, float):
        return {"double": "nan" if value != value else repr(value)}
    if isinstance(value, bytes | bytearray):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, datetime.datetime):
        return {"timestamp": (value - EPOCH) // MICROSECOND}
    if isinstance(value, datetime.timedelta):
        return {"duration": value // MICROSECOND}
    if isinstance(value, list):
        return [told(item) for item in value]
    if not hasattr(value, "items"):
        return {"other": "a type or an optional"}
    return {"map": sorted([json.dumps(told(k)), told(v)] for k, v in value.items())}


def main() -> None:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

    asked = json.load(sys.stdin)
    env = cel.NewEnv(
        variables=dict.fromkeys(asked["variables"], cel.Type.DYN),
        extensions=[
            ext_math.ExtMath(),
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_encoders.ExtEncoders(),
            ext_bindings.ExtBindings(),
        ],
    )
    outcomes: list[list[Any]] = []
    for each in asked["expressions"]:
        try:
            result = env.compile(each["text"], disable_check=True).eval(data=each["data"])
            if result.type().name() == "ERROR":
                outcomes.append(["error", str(result.plain_value())])
            else:
                outcomes.append(["value", told(result.plain_value())])
        except Exception as error:
            outcomes.append(["error", str(error)])
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
