"""Claims: taking runs that are due, by the hundred, for the definitions this worker serves.

A run keeps the version it was started with: where that is not the one served, it is rebuilt from
what the store keeps. A run that cannot go on here (a step is gone, a journal this version cannot
read) stalls with the reason; it is tried again whenever a worker opens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from perdure.engine.loading import bring_to_life, until
from perdure.engine.outages import READING
from perdure.model.definition import Definition
from perdure.model.errors import NotFound, PayloadMissing, PerdureError, StoreError
from perdure.stores.answers import Claim, LoadedRun
from perdure.stores.port import LONE_CRASHES
from perdure.stores.rows import NEVER, StoredDefinition

if TYPE_CHECKING:
    from perdure.engine.shell import Shell

_log = logging.getLogger("perdure.engine")

BATCH: Final = 100
MOST_LIVE: Final = 10_000
#: What a look asks the store for, in words.
LOOKING: Final = "looking for due runs"


class Claims:
    """`served`: by name, the definitions whose runs this worker takes; also by the names that they
    had before, under which they stand then. `own`: the same, each once."""

    def __init__(
        self,
        shell: Shell,
        definitions: Sequence[Definition[Any, Any]],
        rebuild: Callable[[StoredDefinition], Definition[Any, Any]],
        poll: float,
    ) -> None:
        self.own = list(definitions)
        self.served = {name: of for definition in definitions for name, of in _named(definition)}
        self._shell = shell
        self._rebuild = rebuild
        self._poll = poll
        self._by_hash = {definition.hash: definition for definition in self.served.values()}
        #: By hash, definitions that runs here ask for and others serve.
        self._known: dict[str, Definition[Any, Any]] = {}
        #: Makes of a stored definition one whose runs can be started, though not here, maybe.
        self.startable: Callable[[StoredDefinition], Definition[Any, Any]] | None = None
        #: Whether runs that its own runs ask for are taken, too, whatever they are of.
        self.adopts = False
        self._task: asyncio.Task[None] | None = None
        self._hint = asyncio.Event()
        self.resumed = 0
        #: Runs that are to end and whose code cannot go on, each with the reason: told when they
        #: are loaded again.
        self.given_up: dict[bytes, str] = {}
        #: Runs that came alone and are held here: when one leaves, the next may come.
        self.lone: set[bytes] = set()

    def serves(self, definition: Definition[Any, Any]) -> bool:
        """Whether runs of this very definition are worked on here."""
        return definition.hash in self._by_hash

    async def find(self, name: str) -> Definition[Any, Any]:
        """The definition that a new run of this name gets: the one served here, else the one that
        was published last. Raises NotFound where nobody knows the name."""
        if (served := self.served.get(name)) is not None:
            return served
        stored = await self._latest(name)
        known = self._known.get(stored.hash)
        if known is None or not stored.source:  # what is known of code may change
            known = self._known[stored.hash] = (self.startable or self._rebuild)(stored)
        return known

    async def _latest(self, name: str) -> StoredDefinition:
        delay = 0.05
        while True:
            try:
                stored = await self._shell.store.latest_definition(name)
                self._shell.outages.note(READING, None)
                return stored
            except StoreError as error:
                self._shell.outages.note(READING, error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, 5.0)

    def add(self, definition: Definition[Any, Any]) -> None:
        """Serve one more definition."""
        self.own.append(definition)
        for name, of in _named(definition):
            self.served[name] = of
            self._by_hash[of.hash] = of

    async def open(self) -> None:
        """Give stalled runs another chance, take what is due now, and go on looking."""
        await self._shell.store.unstall(list(self.served))
        self.resumed += await self.take_all()
        self._task = self._shell.spawn(self._watch())

    async def close(self) -> None:
        """Claim nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def look(self) -> None:
        """Something may be due: look now instead of at the next poll."""
        self._hint.set()

    async def take_all(self) -> int:
        """Claim until nothing more is due; how many runs came into memory."""
        shell, taken = self._shell, 0
        while self.served and shell.may_claim and len(shell.live) < MOST_LIVE:
            worker = shell.worker
            claims = await shell.store.claim_runs(worker, list(self.served), BATCH)
            if shell.worker != worker or shell.struck_off:
                break  # declared dead meanwhile: they are freed with the rest
            keys = {claim.key for claim in claims}
            shell.in_hand |= keys
            try:
                for claim in claims:
                    taken += await self._take(claim)
                    shell.in_hand.discard(claim.key)
            finally:
                shell.in_hand -= keys
            if len(claims) < BATCH and not self._has_left(claims):
                break
        return taken

    def _has_left(self, claims: Sequence[Claim]) -> bool:
        """Whether a run that came alone has left again already: then nothing stands between the
        next one and its turn. One that is held here may be the one that kills."""
        if not claims or claims[-1].crashes < LONE_CRASHES:
            return False
        lone = claims[-1].key
        if lone in self._shell.live:
            self.lone.add(lone)
            return False
        return True

    def left(self, key: bytes) -> None:
        """A run that came alone is not held here any more."""
        self.lone.discard(key)
        self.look()

    async def _watch(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._poll):
                    await self._hint.wait()
            except TimeoutError:
                pass
            self._hint.clear()
            try:
                await self.take_all()
                self._shell.outages.note(LOOKING, None)
            except StoreError as error:
                self._shell.outages.note(LOOKING, error)
            except Exception:  # whatever it was, an engine that stops looking is deaf
                _log.exception("looking for due runs failed")

    async def _take(self, claim: Claim) -> bool:
        shell = self._shell
        loaded: LoadedRun | None = None
        try:
            definition = await self._definition(claim)
            loaded = await shell.store.load(claim.key)
            live = await bring_to_life(shell, claim, definition, loaded)
        except (PerdureError, AssertionError) as error:
            if isinstance(error, StoreError) and not isinstance(error, PayloadMissing):
                _log.warning("run %s could not be loaded: %s; trying again", claim.key.hex(), error)
                self._let_go(claim, None)
                return False
            _log.error("run %s cannot go on here: %s", claim.key.hex(), error)
            why = str(error)
        except Exception as error:
            _log.exception("run %s cannot go on here", claim.key.hex())
            why = f"the engine could not load the run: {error!r}"
        else:
            if live is not None and claim.crashes >= LONE_CRASHES:
                await shell.parking.let_go(live)
            return live is not None
        self._let_go(claim, why, NEVER if loaded is None else until(loaded, shell.clock.now()))
        return False

    async def _definition(self, claim: Claim) -> Definition[Any, Any]:
        served = self.served.get(claim.definition)
        if served is not None and not served.source:
            return served  # code is its own source, whatever version the run began with
        definition = self._by_hash.get(claim.hash)
        if definition is None:
            try:
                stored = await self._shell.store.definition(claim.hash)
            except NotFound:
                raise PerdureError(
                    f"version {claim.hash[:12]} of {claim.definition} is not in this store"
                ) from None
            definition = self._by_hash[claim.hash] = self._rebuild(stored)
        return definition

    def _let_go(self, claim: Claim, stalled: str | None, due: int = NEVER) -> None:
        live = self._shell.live.get(claim.key)
        if live is not None:
            self._shell.drop(live)
        self._shell.spawn(self._give_back(claim, stalled, due))

    async def _give_back(self, claim: Claim, stalled: str | None, due: int) -> None:
        """Until the store takes it: a run that nobody holds and nobody may claim is stuck."""
        delay = 0.05
        while True:
            try:
                return await self._shell.store.give_back(self._shell.worker, claim, stalled, due)
            except StoreError as error:
                _log.warning("run %s could not be given back: %s", claim.key.hex(), error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, 5.0)


def _named(definition: Definition[Any, Any]) -> Iterator[tuple[str, Definition[Any, Any]]]:
    """The definition under each of its names."""
    for name in (definition.name, *definition.aliases):
        yield name, definition.under(name)
