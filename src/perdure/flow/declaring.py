"""What `@step` and `@workflow` refuse where they are written: wrong functions, wrong options, all
at once (D-24)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from perdure.flow.binding import function_signature
from perdure.model.duration_forms import Duration
from perdure.model.durations import microseconds
from perdure.model.errors import DefinitionError, InvalidName, InvalidOptions
from perdure.model.names import check_name, name_from_function

T = TypeVar("T")
MAX_PRIORITY = 32_767
_BY_POSITION: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


class Problems:
    """Collects the problems of one declaration, to raise them together."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._found: list[DefinitionError] = []

    def of(self, check: Callable[..., T], *args: Any) -> T | None:
        """What `check(*args)` gives, or None with its problem kept."""
        try:
            return check(*args)
        except DefinitionError as problem:
            self._found.append(problem)
            return None

    def raise_any(self) -> None:
        """Raise what was found: a single problem as itself."""
        if len(self._found) == 1:
            problem = self._found[0]
            raise type(problem)(f"{self._what}: {problem}") from None
        if self._found:
            texts = [str(problem) for problem in self._found]
            raise DefinitionError(f"{self._what}: {'; '.join(texts)}", texts)


def check_function(function: Any) -> None:
    """Whether this can be a step: a plain `def` or `async def` outside a class."""
    if isinstance(function, (staticmethod, classmethod)) or not inspect.isfunction(function):
        raise DefinitionError(
            f"{function!r} cannot be a step: put @step on a function, a `def` or an `async def`"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError("a step gives one value: return it, do not yield")
    if _is_method(function):
        holder = function.__qualname__.rpartition(".")[0]
        raise DefinitionError(
            "a method cannot be a step, because the object it belongs to is not recorded: make it "
            "a function and get the object inside it by "
            f"current_step().resource({holder.rpartition('.')[2]}), "
            "given as Engine(resources=[...])"
        )


def takes_input(function: Any) -> bool:
    """Whether a workflow's function takes an input; DefinitionError for what cannot be one."""
    if not inspect.isfunction(function):
        raise DefinitionError(
            f"{function!r} cannot be a workflow: put @workflow on a function, an `async def`"
        )
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise DefinitionError("a workflow gives one value: return it, do not yield")
    if not inspect.iscoroutinefunction(function):
        raise DefinitionError("a workflow is an `async def`: it awaits its steps")
    if _is_method(function):
        raise DefinitionError(
            "a method cannot be a workflow, because the object it belongs to is not recorded: "
            "make it a function, and pass what it needs as its input"
        )
    found = list(function_signature(function).parameters.values())
    by_name = [p for p in found if p.kind not in _BY_POSITION]
    if by_name or not 1 <= len(found) <= 2:
        raise DefinitionError(
            "a workflow takes (ctx) or (ctx, input): put several values into one record"
        )
    return len(found) == 2


def _is_method(function: Any) -> bool:
    holder = function.__qualname__.rpartition(".")[0]
    code = function.__code__
    first = code.co_varnames[0] if code.co_argcount else ""
    return bool(holder) and not holder.endswith("<locals>") and first in ("self", "cls")


def checked_aliases(aliases: object, name: str) -> tuple[str, ...]:
    """Names that a definition had before, each once; `name` is the one it has."""
    if isinstance(aliases, str) or not isinstance(aliases, Sequence):
        raise InvalidOptions(f"aliases {aliases!r}: give a list of names")
    if name in aliases:
        raise InvalidOptions(f"alias {name!r} is the name it has: list names that it had before")
    return tuple(dict.fromkeys(check_name(alias, "alias") for alias in aliases))


def checked_version(version: object) -> str:
    """A label that people read."""
    if isinstance(version, str) and 0 < len(version) <= 64 and version.isprintable():
        return version
    raise InvalidOptions(f"version {version!r}: use 1-64 printable characters")


def checked_max_duration(value: Duration | None) -> int | None:
    """How long a run may take, in µs; None = no end."""
    if value is None:
        return None
    limit = microseconds(value, "max_duration")
    if limit <= 0:
        raise InvalidOptions(f"max_duration {value!r}: use more than 0, or None for no end")
    return limit


def checked_description(text: object) -> str:
    """What people read about a definition."""
    if isinstance(text, str):
        return text
    raise InvalidOptions(f"description {text!r}: use text")


def checked_step_name(name: str | None, function: Any, what: str = "step") -> str:
    """The name given, or the function's own with hyphens."""
    if name is not None:
        return check_name(name, f"{what} name")
    own = getattr(function, "__name__", "")
    try:
        return check_name(name_from_function(own), f"{what} name")
    except InvalidName as problem:
        raise InvalidName(f"{problem}, or say @{what}(name=...)") from None


def checked_timeout(timeout: Duration | None) -> int:
    """A step's timeout in µs; None and zero = no limit."""
    if timeout is None:
        return 0
    limit = microseconds(timeout, "timeout")
    # Shorter than a microsecond is still a limit.
    return limit or (1 if isinstance(timeout, float) and timeout else 0)


def checked_priority(priority: object) -> int:
    """A whole number; larger is sooner."""
    if (
        isinstance(priority, int)
        and not isinstance(priority, bool)
        and abs(priority) <= MAX_PRIORITY
    ):
        return priority
    raise InvalidOptions(
        f"priority {priority!r}: use a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}"
    )


def checked_label(label: object) -> str:
    """What is shown for a call instead of the step's name."""
    if isinstance(label, str):
        return label
    raise InvalidOptions(f"label {label!r}: use text")
