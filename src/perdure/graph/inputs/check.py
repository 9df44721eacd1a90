"""The check of what a start gives against the `input` schema of its document.

Needs the extra [schema]. Made when a document is loaded, once for every schema, and asked before
anything of a run is written. It says all that does not fit, and changes nothing: `default` in a
schema is for readers.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

import msgspec

from perdure.graph.inputs.code import TooMuch, UnsafeCode, Validator, validator_of
from perdure.graph.inputs.schema import PlainSchema, read_schema
from perdure.graph.inputs.words import in_words
from perdure.model.errors import InvalidRequest
from perdure.model.graph_rules import Finding

_SHOWN: Final = 20


class InputCheck(msgspec.Struct, frozen=True, eq=False):
    """Whether inputs fit one schema."""

    plain: PlainSchema
    validator: Validator

    def problems(self, value: Any) -> list[str]:
        """Everything that does not fit, in words; [] = it fits. The value is left as it is."""
        try:
            self.validator(value)
        except TooMuch:
            return ["input: checking it against the schema takes too long"]
        except RecursionError:
            return ["input is nested too deeply to be checked"]
        except Exception as error:
            found = getattr(error, "errors", None)
            if found is None:
                return [f"input cannot be checked: {error}"]
            return list(dict.fromkeys(in_words(one, self.plain.called) for one in found))
        return []

    def refuse(self, workflow: str, value: Any) -> None:
        """Raise InvalidRequest, listing the problems, unless the value fits."""
        problems = self.problems(value)
        if not problems:
            return
        if value is None:
            problems = [one.replace("and is null", "and none was given") for one in problems]
        lines = [f"the input of {workflow} does not fit its schema:"]
        lines += [f"  {problem}" for problem in problems[:_SHOWN]]
        if len(problems) > _SHOWN:
            lines.append(f"  … and {len(problems) - _SHOWN} more")
        raise InvalidRequest("\n".join(lines) if len(lines) > 2 else f"{lines[0]} {problems[0]}")


def input_check(schema: Any, at: str, findings: list[Finding]) -> InputCheck | None:
    """The check for the schema at a pointer of a document; None, with `findings`, when there
    cannot be one."""
    if missing_extra():
        message = "a schema of the input needs the extra [schema]"
        findings.append(Finding(at, message, None, "pip install 'perdure[schema]'", on_key=True))
        return None
    check, found = _made(json.dumps(schema, sort_keys=True), at)
    findings += found
    return check


@lru_cache(maxsize=256)
def _made(text: str, at: str) -> tuple[InputCheck | None, tuple[Finding, ...]]:
    findings: list[Finding] = []
    plain = read_schema(json.loads(text), at, findings)
    if findings:
        return None, tuple(findings)
    try:
        return InputCheck(plain, validator_of(plain)), ()
    except UnsafeCode as error:
        message = f"this schema would be code that is not let run ({error})"
    except Exception as error:
        message = f"this schema cannot be used: {str(error)[:200]}"
    return None, (Finding(at, message, None, "write it in plainer words"),)


def missing_extra() -> bool:
    """Whether fastjsonschema is not installed."""
    try:
        return find_spec("fastjsonschema") is None
    except ValueError:  # a module put there without a spec, or None in its place
        return True
