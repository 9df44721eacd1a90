"""Part: one step as it was declared, with all that is wrong with it in words.

Nothing is raised here: the builder tells all problems of a saga at once.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from perdure.flow import legible
from perdure.flow.binding import function_signature
from perdure.flow.declaring import checked_timeout
from perdure.flow.step import Step
from perdure.model.definition import Definition
from perdure.model.errors import DefinitionError
from perdure.model.names import is_node_id
from perdure.model.policy import Retry, as_retry

LONGEST_NAME: Final = 64
_ONCE: Final = Retry(1)
_WITH_UNDO: Final = ("undo_retry", "undo_timeout", "undo_unknown")


class Part(msgspec.Struct, frozen=True):
    """A step: what it runs, and how. `after` None: the step declared before it. Times in µs per
    attempt, 0 = no limit."""

    name: str
    run: Any
    is_async: bool
    after: tuple[str, ...] | None
    when: Callable[[Any], object] | None
    retry: Retry
    timeout: int
    undo: Callable[..., Any] | None
    undo_is_async: bool
    undo_retry: Retry
    undo_timeout: int
    undo_unknown: bool

    @property
    def step(self) -> Step[..., Any] | None:
        """The declared step that it runs, if it runs one."""
        return self.run if isinstance(self.run, Step) else None

    @property
    def child(self) -> str | None:
        """The definition of which it asks for a run, if it does."""
        return self.run.name if isinstance(self.run, Definition) else None


def part_of(name: Any, run: Any, options: dict[str, Any]) -> tuple[Part, list[str]]:
    """A step as it was declared, and what is wrong with it: each a sentence that names it."""
    faults: list[str] = []

    def of(check: Callable[..., Any], *args: Any) -> Any:
        try:
            return check(*args)
        except DefinitionError as problem:
            faults.extend(map(str, problem.problems))
            return None

    of(_checked_name, name)
    of(_checked_run, run)
    undo, when = options["undo"], options["when"]
    if undo is not None:
        of(_checked_undo, undo)
    else:
        given = [word for word in _WITH_UNDO if options[word] is not UNSET]
        if given:
            faults.append(f"{', '.join(given)} without undo=: say what undoes it, or leave it out")
    if when is not None:
        of(_checked_when, when)
    own = run if isinstance(run, Step) else None
    made = Part(
        name=name if isinstance(name, str) else repr(name),
        run=run,
        is_async=_is_async(run),
        after=of(_checked_after, options["depends_on"]),
        when=when,
        retry=_or(of, as_retry, options["retry"], own.retry if own else _ONCE),
        timeout=_or(of, checked_timeout, options["timeout"], own.timeout_us if own else 0),
        undo=undo,
        undo_is_async=_is_async(undo),
        undo_retry=_or(of, as_retry, options["undo_retry"], _ONCE),
        undo_timeout=_or(of, checked_timeout, options["undo_timeout"], 0),
        undo_unknown=options["undo_unknown"] is not False,
    )
    return made, [f"step {made.name}: {fault}" for fault in faults]


def _or(of: Callable[..., Any], check: Callable[..., Any], given: Any, otherwise: Any) -> Any:
    """What was given, checked; what stands where nothing was given, or nothing good."""
    made = None if given is UNSET else of(check, given)
    return otherwise if made is None else made


def illegible(part: Part) -> Iterator[str]:
    """What its function gives and nobody could read back."""
    if part.step is not None or not inspect.isfunction(part.run):
        return  # a declared step was looked at where it was declared
    try:
        legible.check_function(part.run, 1)
        return
    except DefinitionError as problem:
        faults = [f"step {part.name}: {fault}" for fault in problem.problems]
    yield from faults


def _checked_name(name: object) -> None:
    if not is_node_id(name) or len(str(name)) > LONGEST_NAME:
        raise DefinitionError(
            f"a step's name is 1-{LONGEST_NAME} letters, digits, - and _, and begins with a letter"
        )


def _checked_run(run: Any) -> None:
    if isinstance(run, Step):
        if not _takes_one(run.fn):
            raise DefinitionError(
                f"{run.name} is called with the payload, and nothing else: give a function of "
                "the context that calls it, `async def f(ctx): return await the_step(...)`"
            )
    elif not isinstance(run, Definition):
        _checked_function(run, "")


def _checked_undo(undo: Any) -> None:
    if isinstance(undo, Step | Definition):
        raise DefinitionError(
            f"undo={undo.name} would not know what to undo: give a function of the context that "
            "calls it, `async def undo(ctx): await the_step(ctx.output(...))`"
        )
    _checked_function(undo, "undo=")


def _checked_function(function: Any, what: str) -> None:
    """Whether it is called with the context alone."""
    if function is None:
        raise DefinitionError("it has no function: give what it runs after its name")
    if not callable(function) or isinstance(function, type | staticmethod | classmethod):
        raise DefinitionError(f"{what}{function!r} is no function: give a `def` or an `async def`")
    bare = _bare(function)
    if inspect.isgeneratorfunction(bare) or inspect.isasyncgenfunction(bare):
        raise DefinitionError(f"{what}{_shown(function)} gives one value: return it, do not yield")
    if not _takes_one(function):
        raise DefinitionError(f"{what}{_shown(function)} is called with the context, `def f(ctx)`")


def _checked_when(when: Any) -> None:
    if not callable(when) or not _takes_one(when):
        raise DefinitionError(f"when={when!r} is asked with the payload: give a function of it")
    if _is_async(when) or isinstance(when, Step):
        raise DefinitionError(
            f"when={_shown(when)} is asked while it is decided what comes next: make it a plain "
            "`def` that looks at the payload and at nothing else"
        )


def _checked_after(names: Any) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise DefinitionError(f"depends_on={names!r}: give a list of names of steps")
    if not all(isinstance(name, str) for name in names):
        raise DefinitionError(f"depends_on={list(names)!r}: give the names of steps, as text")
    return tuple(dict.fromkeys(names))


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether it can be called with one value."""
    try:
        function_signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        return True  # a function of an extension: nobody can tell
    return True


def _is_async(function: Any) -> bool:
    if isinstance(function, Step):
        return function.is_async
    return inspect.iscoroutinefunction(_bare(function))


def _bare(function: Any) -> Any:
    """The function that is called in the end: of a partial, or of an object that is called."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isfunction(function) or inspect.ismethod(function):
        return function
    return getattr(type(function), "__call__", function)  # noqa: B004  to look at, not to call


def _shown(function: Any) -> str:
    return getattr(function, "__qualname__", repr(function))
