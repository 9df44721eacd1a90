"""Registry: the definitions and steps one engine knows, by name.

One namespace for both (W-2). Everything wrong with the list is reported at once; what was
collected does not change afterwards, whatever happens to the variables it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from inspect import isfunction
from types import ModuleType
from typing import Any, TypeAlias

from perdure.flow.legible import check_function, fault, globals_of
from perdure.flow.shapes import READ_BY_CODECS
from perdure.flow.signal import Mailbox
from perdure.flow.step import Step
from perdure.flow.workflow import Workflow
from perdure.model.definition import Definition
from perdure.model.errors import DefinitionError, DuplicateName

Listed: TypeAlias = Definition[Any, Any] | Step[..., Any] | ModuleType


class Registry:
    """Steps and definitions by name. Listings are sorted copies (W-14)."""

    __slots__ = ("_definitions", "_former", "_steps")

    def __init__(
        self,
        definitions: Iterable[Definition[Any, Any]] = (),
        steps: Iterable[Step[..., Any]] = (),
    ) -> None:
        self._definitions = {d.name: d for d in sorted(definitions, key=_name)}
        self._former = {alias: d for d in self._definitions.values() for alias in d.aliases}
        self._steps = {s.name: s for s in sorted(steps, key=_name)}

    @classmethod
    def of(cls, things: Iterable[Listed], *, codec: bool = True) -> Registry:
        """A registry of all these; a module gives the steps and definitions at its top level.
        `codec`: whether a codec of a user's may read what JSON says nothing of.

        The same object twice is one. A step and copies of it by `with_options` are one: the step
        itself serves calls by name. Names that definitions had before (`aliases`) are taken, too.
        Raises DuplicateName, or DefinitionError for other problems.
        """
        found, problems = _collected(things)
        broken = dict(_broken(found))
        problems += [problem for several in broken.values() for problem in several]
        chosen: list[Definition[Any, Any] | Step[..., Any]] = []
        duplicates: list[str] = []
        for name, same in found.items():
            if name in broken:
                continue
            try:
                chosen.append(_one_of(name, same))
            except DuplicateName as problem:
                duplicates.append(str(problem))
        duplicates += _aliased(chosen, found)
        problems += _illegible(chosen, codec=codec)
        if problems or duplicates:
            kind = DefinitionError if problems else DuplicateName
            raise kind("; ".join([*problems, *duplicates]), [*problems, *duplicates])
        return cls(
            [thing for thing in chosen if isinstance(thing, Definition)],
            [thing for thing in chosen if isinstance(thing, Step)],
        )

    @property
    def steps(self) -> dict[str, Step[..., Any]]:
        """Every step by name, sorted."""
        return dict(self._steps)

    @property
    def definitions(self) -> dict[str, Definition[Any, Any]]:
        """Every definition by name, sorted."""
        return dict(self._definitions)

    def step(self, name: str) -> Step[..., Any] | None:
        """The step of this name, or None."""
        return self._steps.get(name)

    def definition(self, name: str) -> Definition[Any, Any] | None:
        """The definition that has this name, or had it before, or None."""
        return self._definitions.get(name) or self._former.get(name)


_Found: TypeAlias = dict[str, list[Definition[Any, Any] | Step[..., Any]]]


def _collected(things: Iterable[Any]) -> tuple[_Found, list[str]]:
    """Everything listed under its name, each object once; and what cannot be listed."""
    found: _Found = {}
    problems: list[str] = []

    def add(thing: Definition[Any, Any] | Step[..., Any]) -> None:
        same = found.setdefault(thing.name, [])
        if not any(thing is other for other in same):
            same.append(thing)

    for thing in things:
        if isinstance(thing, (Definition, Step)):
            add(thing)
        elif isinstance(thing, ModuleType):
            inside = [t for t in vars(thing).values() if isinstance(t, (Definition, Step))]
            for one in inside:
                add(one)
            if not inside:
                problems.append(
                    f"module {thing.__name__} has no step or workflow at its top level: put @step "
                    "(from perdure import step) on the functions that are steps"
                )
        else:
            problems.append(_unlistable(thing))
    return found, problems


def _broken(found: _Found) -> Iterator[tuple[str, list[str]]]:
    """By name, what is wrong with definitions that are looked at only here."""
    for name, same in found.items():
        several: list[str] = []
        for one in (thing for thing in same if isinstance(thing, Definition)):
            try:
                one.check()
            except DefinitionError as problem:
                several += [f"{one.kind} {name}: {fault}" for fault in problem.problems]
        if several:
            yield name, several


def _one_of(
    name: str, same: list[Definition[Any, Any] | Step[..., Any]]
) -> Definition[Any, Any] | Step[..., Any]:
    """The one thing that all of `same` are, or DuplicateName."""
    first = same[0]
    if len(same) == 1:
        return first
    steps = [thing for thing in same if isinstance(thing, Step)]
    definitions = [thing for thing in same if isinstance(thing, Definition)]
    if not definitions and len({id(s.base) for s in steps}) == 1:
        base = steps[0].base
        if any(thing is base for thing in steps):
            return base
        raise DuplicateName(
            f"step {name} is listed as {len(steps)} different copies by with_options: "
            "list the step itself, or one of them"
        )
    # A document read twice is one definition: its hash says so.
    hashes = {(type(d), d.hash) for d in definitions}
    if not steps and len(hashes) == 1 and definitions[0].hash and not definitions[0].typed:
        return first
    raise DuplicateName(
        f"{name!r} is the name of {len(same)} different things ({', '.join(map(_shown, same))}): "
        "workflows and steps share one list of names, rename all but one"
    )


def _aliased(
    things: Iterable[Definition[Any, Any] | Step[..., Any]], found: _Found
) -> Iterator[str]:
    """Aliases that something else has as its name, or had."""
    owners: dict[str, Definition[Any, Any]] = {}
    for thing in things:
        if isinstance(thing, Step):
            continue
        for alias in thing.aliases:
            other = found[alias][0] if alias in found else owners.get(alias)
            if other is not None:
                yield (
                    f"{alias!r} is an alias of {_shown(thing)} and belongs to {_shown(other)} as "
                    "well: nobody could tell whose runs of that name are, leave out one"
                )
            owners.setdefault(alias, thing)


def _illegible(
    things: Iterable[Definition[Any, Any] | Step[..., Any]], *, codec: bool
) -> Iterator[str]:
    """Of what was declared before its types were complete, or in the belief that a codec reads
    them: those that can never be read back. Steps need not be listed where a workflow calls them:
    what it names is looked at, too, and what the steps of a saga run."""
    chosen: dict[int, Any] = {}
    for thing in things:
        named = globals_of(thing.fn) if isinstance(thing, Workflow) else ()
        declared = [one for one in named if isinstance(one, Step | Workflow | Mailbox)]
        for one in (thing, *declared, *getattr(thing, "functions", ())):
            chosen[id(one)] = one
    uncoded = bool(READ_BY_CODECS) and not codec
    for one in chosen.values():
        try:
            if isinstance(one, Step | Workflow):
                if uncoded or not one.types_known:
                    check_function(one.fn, 1 if isinstance(one, Workflow) else 0, codec=codec)
            elif uncoded:
                _check_uncoded(one)
        except DefinitionError as problem:
            yield f"{_declared(one)}: {problem}"


def _check_uncoded(thing: Any) -> None:
    """Raise DefinitionError for a mailbox, or a function of a saga's, whose values only a codec
    reads."""
    if isinstance(thing, Mailbox):
        if why := fault(getattr(thing.read, "kind", Any), codec=False):
            raise DefinitionError(f"its type can never be read back from JSON: {why}")
    elif isfunction(thing):
        check_function(thing, 1, codec=False)


def _declared(thing: Any) -> str:
    if isinstance(thing, Step | Workflow):
        return (
            f"@{'workflow' if isinstance(thing, Workflow) else 'step'} on {thing.fn.__qualname__}"
        )
    return f"signal {thing.name}" if isinstance(thing, Mailbox) else f"{thing.__qualname__}"


def _unlistable(thing: Any) -> str:
    if callable(thing):
        name = getattr(thing, "__qualname__", repr(thing))
        return f"{name} is neither a step nor a workflow: decorate it with @step"
    return f"{thing!r} is neither a step nor a workflow, nor a module of them"


def _shown(thing: Definition[Any, Any] | Step[..., Any]) -> str:
    if isinstance(thing, Step):
        return f"step {thing.fn.__module__}.{thing.fn.__qualname__}"
    return f"{thing.kind} {thing.name} version {thing.version}"


def _name(thing: Definition[Any, Any] | Step[..., Any]) -> str:
    return thing.name
