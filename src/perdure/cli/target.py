"""What a command's FILE|APP means: a document, a workflow in Python, or the name of one of an app.

A document is a .json, .yaml or .yml, or any other file that is there and is not Python. A workflow
is `file.py` or `module` where that holds one, `file.py:name` or `module:attr` where it holds
several, or just its name where an app (`--app`, [tool.perdure] app) has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perdure.cli.app import Absent, check_steps, find_apps, load, load_apps
from perdure.cli.exits import usage

if TYPE_CHECKING:
    from perdure.flow.registry import Registry
    from perdure.graph.definition import Graph
    from perdure.model.definition import Definition

#: Names that are a document's even where there is none.
DOCUMENTS: Final = (".json", ".yaml", ".yml")


class Target(NamedTuple):
    """A definition, and what is served beside it: the steps that it calls by name, and the
    workflows and steps that stand in the same file."""

    definition: Definition[Any, Any]
    beside: list[Any]


def is_document(word: str) -> bool:
    """Whether this names a document and not Python code or a name."""
    path = word.lower()
    return path.endswith(DOCUMENTS) or (not path.endswith(".py") and Path(word).is_file())


def document(file: str) -> Graph:
    """The document in a file. Raises Trouble for Python code, saying what goes with it."""
    from perdure.graph.definition import Graph

    if file.lower().partition(":")[0].endswith(".py"):
        raise usage(
            f"{file} is Python: this is about documents (.json, .yaml). A workflow in Python is "
            "checked by running it: perdure run, or perdure.testing.play in a test. A saga is "
            "checked as a whole where it is run or drawn: perdure draw"
        )
    return Graph.read(file)


def find_target(word: str, apps: Sequence[str]) -> Target:
    """What is to be run. Raises Trouble saying what it may have meant, and what loading raises."""
    found = find_apps(apps)
    if is_document(word):
        graph = document(word)
        known = load_apps(found)
        check_steps(graph, known, found, word)
        return Target(graph, _others(graph, known))
    named = find_named(word, found)
    if named is not None:
        return named
    try:
        thing = load(word)
    except Absent:
        if is_code(word):
            raise
        there = ", ".join(load_apps(found).definitions) or "none"
        where = f"; {', '.join(found)} has no workflow of that name (it has: {there})"
        raise Absent(f"there is no file {word} and no module{where if found else ''}") from None
    definition = _chosen(word, thing)
    home = _home(definition)
    beside = [] if home is None else _declared(home)
    return Target(definition, _others(definition, load_apps(found, definition, *beside)))


def find_named(name: str, found: Sequence[str]) -> Target | None:
    """The workflow of this name that the apps have, if they do."""
    if not found or is_code(name):
        return None
    known = load_apps(found)
    definition = known.definition(name)
    return None if definition is None else Target(definition, _others(definition, known))


def is_code(word: str) -> bool:
    """Whether this can only be Python."""
    return ":" in word or word.lower().endswith(".py")


def _chosen(word: str, thing: Any) -> Definition[Any, Any]:
    from perdure.model.definition import Definition

    if isinstance(thing, Definition):
        return thing
    if not isinstance(thing, ModuleType):
        raise usage(f"{word} is no workflow but a {type(thing).__name__}")
    inside = [one for one in _declared(thing) if isinstance(one, Definition)]
    own = [one for one in inside if _home(one) in (thing, None)] or inside
    if len(own) == 1:
        return own[0]
    if own:
        words = ", ".join(f"{word}:{one.name}" for one in own)
        raise usage(f"{word} holds {len(own)} workflows: say which one, as {words}")
    raise usage(
        f"{word} holds no workflow: put @workflow(max_duration=…) (from perdure import workflow) "
        "on an `async def` at its top level"
    )


def _declared(module: ModuleType) -> list[Any]:
    """The workflows and steps at a module's top level, each once."""
    from perdure.flow.step import Step
    from perdure.model.definition import Definition

    found = {id(t): t for t in vars(module).values() if isinstance(t, (Definition, Step))}
    return list(found.values())


def _home(definition: Definition[Any, Any]) -> ModuleType | None:
    """The module that a workflow's function stands in, or one of a saga's."""
    import sys

    for thing in (definition, *getattr(definition, "functions", ())):
        name = getattr(getattr(thing, "fn", thing), "__module__", None) or "perdure"
        if name.partition(".")[0] != "perdure":
            return sys.modules.get(name)
    return None


def _others(definition: Definition[Any, Any], known: Registry) -> list[Any]:
    return [
        *(one for one in known.definitions.values() if one.name != definition.name),
        *(step for name, step in known.steps.items() if name != definition.name),
    ]
