"""The page of errors, put together from the classes, the docstrings of what raises them, and the
advice beside them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tests.docs.errors.advice import GROUPS, Advice
from tests.tidy.tree import ROOT

HERE = Path(__file__).parent
PAGE = ROOT / "docs" / "reference" / "errors.md"
#: The modules whose names are public. `perdure.blocking` raises what `perdure` does.
PUBLIC: Final = (
    "perdure", "perdure.errors", "perdure.feed", "perdure.conformance", "perdure.testing",
    "perdure.drivers", "perdure.telemetry", "perdure.blocking",
)  # fmt: skip
#: Of these what docstrings say of exceptions is for those who use them.
ASKED: Final = ("perdure", "perdure.feed", "perdure.testing", "perdure.telemetry")
#: A part of a docstring that says what is raised.
_RAISES = re.compile(r"\braises?\b(.*?)(?:\.(?:\s|$)|$)", re.IGNORECASE | re.DOTALL)


def public_errors() -> dict[str, type[BaseException]]:
    """The exceptions among the public names."""
    return {
        name: thing
        for module in PUBLIC
        for name, thing in _names(module)
        if isinstance(thing, type) and issubclass(thing, BaseException)
    }


def page_of(groups: list[Any] = GROUPS) -> str:
    """The whole page."""
    errors, raisers = public_errors(), raised_by()
    parts = [_read("head.txt"), "| error | of | again |\n|---|---|---|\n"]
    for group in groups:
        for name, advice in group.advice.items():
            parts.append(
                f"| [`{name}`](#{name.lower()}) | {_base(errors[name])} | {advice.short} |\n"
            )
    for group in groups:
        parts.append(f"\n## {group.title}\n\n" + (f"{group.intro}\n\n" if group.intro else ""))
        parts.append(
            "\n".join(
                _entry(errors[name], advice, raisers.get(name, ()))
                for name, advice in group.advice.items()
            )
        )
    return "".join([*parts, "\n", _read("tail.txt")])


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _entry(error: type[BaseException], advice: Advice, raisers: Any) -> str:
    name = error.__name__
    lines = [f"### `{name}`", "", " ".join((inspect.getdoc(error) or "").split()), ""]
    home = "perdure" if name in import_module("perdure").__all__ else "perdure.errors"
    kind = getattr(error, "kind", "")
    told = f"`from {home} import {name}`; derives from {_base(error)}"
    lines.append(f"- {told}" + (f"; recorded with kind `{kind}`" if kind else ""))
    if raisers:
        lines.append(f"- Raised by {', '.join(f'`{one}`' for one in raisers)}")
    lines += [f"- **What to do.** {advice.do}", f"- **Again?** {advice.again}", ""]
    return "\n".join(lines)


def _base(error: type[BaseException]) -> str:
    return ", ".join(f"`{base.__name__}`" for base in error.__bases__)


def raised_by() -> dict[str, list[str]]:
    """By the name of an exception: what says in its docstring that it raises it."""
    names = public_errors()
    found: dict[str, list[str]] = {name: [] for name in names}
    for place, doc in _docstrings():
        said = " ".join(_RAISES.findall(" ".join(doc.split())))
        for name in names:
            if re.search(rf"\b{name}\b", said) and place not in found[name]:
                found[name].append(place)
    return found


def _docstrings() -> Iterator[tuple[str, str]]:
    """Of every public name that is no exception, and of the public members of classes."""
    for module in ASKED:
        for name, thing in _names(module):
            if isinstance(thing, type) and issubclass(thing, BaseException):
                continue
            yield name, inspect.getdoc(thing) or ""
            members = vars(thing).items() if isinstance(thing, type) else ()
            for member, value in members:
                if not member.startswith("_"):
                    call = getattr(value, "__func__", value)  # of a class method
                    yield f"{name}.{member}", getattr(call, "__doc__", None) or ""


def _names(module: str) -> Iterator[tuple[str, Any]]:
    found = import_module(module)
    for name in found.__all__:
        yield name, getattr(found, name)
