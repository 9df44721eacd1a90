"""Resources: the objects given to an engine, found by steps by their type.

A step asks for what it needs (`current_step().resource(Pool)`) and so stays a plain function
that tests can give a fake.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from perdure.model.errors import DefinitionError, InvalidRequest, NotFound
from perdure.model.protocols import fits

T = TypeVar("T")


class Resources:
    """Objects by type: of exactly that type first, else the only one that is an instance of it.

    Raises DefinitionError when two objects have the same type, or one is a class.
    """

    __slots__ = ("_exact", "_found")

    def __init__(self, objects: Iterable[object] = ()) -> None:
        problems: list[str] = []
        self._exact: dict[type, object] = {}
        for thing in objects:
            kind = type(thing)
            if isinstance(thing, type):
                problems.append(f"{thing.__name__} is a class: give an object of it")
            elif self._exact.setdefault(kind, thing) is not thing:
                problems.append(f"two resources are a {kind.__name__}: steps ask by type, keep one")
        if problems:
            raise DefinitionError(f"resources: {'; '.join(problems)}", problems)
        self._found: dict[type, object] = dict(self._exact)

    def find(self, type: type[T], /) -> T:
        """The resource of this type. Raises NotFound, or InvalidRequest if several fit."""
        try:
            return self._found[type]  # type: ignore[return-value]  # filed under its type
        except KeyError:
            found = self._found[type] = self._instance(type)
            return found

    def _instance(self, wanted: type[T]) -> T:
        fitting = [thing for thing in self._exact.values() if _is_a(thing, wanted)]
        if len(fitting) == 1:
            return fitting[0]  # type: ignore[return-value]  # just seen to be one
        if not fitting:
            raise NotFound(
                f"no resource of type {wanted.__name__}: pass one in Engine(resources=[...])"
            )
        names = ", ".join(sorted(type(thing).__name__ for thing in fitting))
        raise InvalidRequest(f"several resources are a {wanted.__name__}: ask for one of {names}")


def _is_a(thing: object, wanted: type[Any]) -> bool:
    try:
        return fits(thing, wanted)
    except TypeError:  # a Protocol that cannot be checked at run time
        raise InvalidRequest(
            f"{wanted.__name__} cannot be looked up: decorate it with @runtime_checkable"
        ) from None
