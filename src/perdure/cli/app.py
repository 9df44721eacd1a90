"""APP: where a program's steps and workflows are. `module`, `module:attr`, `file.py` or
`file.py:name`; several may be given.

From `--app`, else `[tool.perdure] app` in the pyproject.toml of the current folder. The current
folder, and that of a file.py, is importable, as for `python -m` and `python file.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from perdure.cli.exits import USAGE, Trouble, usage

if TYPE_CHECKING:
    from perdure.flow.registry import Listed, Registry
    from perdure.graph.definition import Graph


def find_apps(given: Sequence[str]) -> tuple[str, ...]:
    """What was given, else what the project says; () = no app. Raises Trouble."""
    return tuple(given) or _of_project(Path("pyproject.toml"))


def _of_project(file: Path) -> tuple[str, ...]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise usage(f"{file} cannot be read: {error}") from None
    try:
        app = tomllib.loads(text).get("tool", {}).get("perdure", {}).get("app", ())
    except tomllib.TOMLDecodeError as error:
        raise usage(f"{file} is not TOML: {error}") from None
    apps = (app,) if isinstance(app, str) else tuple(app)
    if not all(isinstance(name, str) and name for name in apps):
        raise usage(f'{file}: [tool.perdure] app: write app = "module:attr", or a list of such')
    return apps


class Absent(Trouble):
    """There is no such file, module or attribute."""

    def __init__(self, message: str) -> None:
        super().__init__(message, USAGE, "usage")


def load_apps(apps: Iterable[str], *more: Listed) -> Registry:
    """The steps and definitions of these apps, and of what is loaded already. Raises Trouble, or
    DefinitionError for what clashes."""
    from perdure.flow.registry import Registry

    found: list[Listed] = [*more]
    for app in apps:
        found += _listed(load(app), app)
    return Registry.of(found)


def check_steps(
    graph: Graph, steps: Registry, apps: Sequence[str], document: str, *, how: str = "--app "
) -> None:
    """Raise Trouble when the document calls steps that the apps do not have. `how`: what stands
    before an app in the command that was given."""
    missing = {
        node.step: node.id
        for node in graph.plan.nodes.values()
        if node.type == "TASK" and node.step is not None and node.step not in steps.steps
    }
    if not missing:
        return
    calls = "; ".join(f"node {node} calls step {step}" for step, node in missing.items())
    if apps:
        known = ", ".join(steps.steps) or "none"
        hint = "".join(map(_undeclared(apps), missing))
        raise usage(
            f"{document}: {calls}, which {', '.join(apps)} does not have (it has: {known}){hint}"
        )
    beside = Path(document).with_name("steps.py")
    example = str(beside) if beside.exists() else "steps.py"
    raise usage(
        f"{document}: {calls}: say where the steps are, with {how}{example} "
        f'or [tool.perdure] app = "{example}" in pyproject.toml'
    )


def _undeclared(apps: Sequence[str]) -> Callable[[str], str]:
    """A hint for a step that is missing, where a plain function of its name is there."""
    named = [Path(app).stem if app.endswith(".py") else app.partition(":")[0] for app in apps]

    def hint(step: str) -> str:
        name = step.replace("-", "_")
        there = any(callable(getattr(sys.modules.get(app), name, None)) for app in named)
        return f"; write @step before def {name}" if there else ""

    return hint


def load(app: str) -> Any:
    """The module that this names, or the thing in it. Raises Absent where nothing is, and Trouble
    for code that cannot be imported."""
    _importable(Path.cwd())
    name, colon, attribute = app.partition(":")
    module = _file(Path(name), app) if name.endswith(".py") else _module(name, app)
    return _inside(module, attribute, app) if colon else module


def _inside(module: ModuleType, name: str, app: str) -> Any:
    """What a module has under this name: an attribute, or a workflow or step that is called so."""
    from perdure.flow.step import Step
    from perdure.model.definition import Definition

    thing: Any = module
    try:
        for part in name.split("."):
            thing = getattr(thing, part)
    except AttributeError:
        listed = [t for t in vars(module).values() if isinstance(t, (Step, Definition))]
        named = [t for t in listed if t.name == name]
        if not named:
            there = ", ".join(sorted({t.name for t in listed}))
            known = f" (it has: {there})" if there else ""
            raise Absent(f"app {app}: module {module.__name__} has no {name!r}{known}") from None
        return named[0]
    return thing


def _module(name: str, app: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            hint = f" (for a file write {name}.py)" if Path(f"{name}.py").exists() else ""
            raise Absent(
                f"app {app}: there is no module {name} here or among the installed ones{hint}"
            ) from None
        raise _broken(app, error) from error
    except (ValueError, TypeError):
        raise Absent(f"app {app!r}: write module:attr, module or file.py") from None
    except Exception as error:
        raise _broken(app, error) from error


def _file(path: Path, app: str) -> ModuleType:
    if not path.is_file():
        raise Absent(f"app {app}: there is no file {path}")
    _importable(path.resolve().parent)
    name = path.stem
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path.resolve()):
        return known
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if known is None:  # a file never takes the place of a module that others use
        sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None) if known is None else None
        raise _broken(app, error) from error
    return module


def _importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _broken(app: str, error: Exception) -> Exception:
    """The app's own code raised while it was imported: say where."""
    if isinstance(error, SyntaxError):
        where = f" ({error.filename}, line {error.lineno})"
    else:
        frame = _own_frame(traceback.extract_tb(error.__traceback__))
        where = f" ({frame.filename}, line {frame.lineno})"
    text = getattr(error, "msg", None) or str(error)
    trouble = usage(f"app {app} cannot be imported: {type(error).__name__}: {text}{where}")
    trouble.__cause__ = error
    return trouble


def _own_frame(frames: traceback.StackSummary) -> traceback.FrameSummary:
    """The innermost place that is not perdure's own: that is where something can be mended."""
    ours = str(Path(__file__).parents[1])
    own = [frame for frame in frames if not frame.filename.startswith((ours, "<frozen "))]
    return (own or frames)[-1]


def _listed(thing: Any, app: str) -> list[Any]:
    from perdure.flow.step import Step
    from perdure.model.definition import Definition

    if isinstance(thing, (Step, Definition, ModuleType)):
        return [thing]
    if isinstance(thing, (list, tuple, set, frozenset)):
        return list(thing)
    raise usage(
        f"app {app} is a {type(thing).__name__}: name a step, a list of steps, or their module"
    )
