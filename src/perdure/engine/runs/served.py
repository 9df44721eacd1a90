"""Served: the definitions whose runs a worker takes, and those that its runs may ask for.

A run keeps the version it was started with: where that is not the one served, it is rebuilt from
what the store keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perdure.engine.outages import Outages
from perdure.model.definition import Definition
from perdure.model.errors import NotFound, PerdureError
from perdure.stores.answers import Claim
from perdure.stores.port import Store
from perdure.stores.rows import StoredDefinition


class Served:
    """`by_name`: the definitions whose runs this worker takes; also by the names that they had
    before, under which they stand then. `own`: the same, each once. `rebuild` makes a definition
    of a stored one."""

    def __init__(
        self,
        store: Store,
        outages: Outages,
        definitions: Sequence[Definition[Any, Any]],
        rebuild: Callable[[StoredDefinition], Definition[Any, Any]],
    ) -> None:
        self.own = list(definitions)
        self.by_name = {name: of for definition in definitions for name, of in _named(definition)}
        self._store = store
        self._outages = outages
        self._rebuild = rebuild
        self._by_hash = {definition.hash: definition for definition in self.by_name.values()}
        #: By hash, definitions that runs here ask for and others serve.
        self._known: dict[str, Definition[Any, Any]] = {}
        #: Makes of a stored definition one whose runs can be started, though not here, maybe.
        self.startable: Callable[[StoredDefinition], Definition[Any, Any]] | None = None
        #: Whether runs that its own runs ask for are taken, too, whatever they are of.
        self.adopts = False

    def serves(self, definition: Definition[Any, Any]) -> bool:
        """Whether runs of this very definition are worked on here."""
        return definition.hash in self._by_hash

    async def find(self, name: str) -> Definition[Any, Any]:
        """The definition that a new run of this name gets: the one served here, else the one that
        was published last. Raises NotFound where nobody knows the name."""
        if (served := self.by_name.get(name)) is not None:
            return served
        stored = await self._outages.read(lambda: self._store.latest_definition(name))
        known = self._known.get(stored.hash)
        if known is None or not stored.source:  # what is known of code may change
            known = self._known[stored.hash] = (self.startable or self._rebuild)(stored)
        return known

    def add(self, definition: Definition[Any, Any]) -> None:
        """Serve one more definition."""
        self.own.append(definition)
        for name, of in _named(definition):
            self.by_name[name] = of
            self._by_hash[of.hash] = of

    async def of(self, claim: Claim) -> Definition[Any, Any]:
        """The definition that a claimed run keeps, served here by its name. Raises PerdureError
        where it cannot be had, StoreError."""
        served = self.by_name.get(claim.definition)
        if served is not None and not served.source:
            return served  # code is its own source, whatever version the run began with
        definition = self._by_hash.get(claim.hash)
        if definition is None:
            try:
                stored = await self._store.definition(claim.hash)
            except NotFound:
                raise PerdureError(
                    f"version {claim.hash[:12]} of {claim.definition} is not in this store"
                ) from None
            definition = self._by_hash[claim.hash] = self._rebuild(stored)
        return definition


def _named(definition: Definition[Any, Any]) -> Iterator[tuple[str, Definition[Any, Any]]]:
    """The definition under each of its names."""
    for name in (definition.name, *definition.aliases):
        yield name, definition.under(name)
