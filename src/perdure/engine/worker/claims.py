"""Claims: taking runs that are due, by the hundred, for the definitions this worker serves.

A run that cannot go on here (a step is gone, a journal this version cannot read) stalls with the
reason; it is tried again whenever a worker opens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from perdure.engine.outages import FIRST_DELAY, LONGEST_DELAY
from perdure.engine.runs.holder import MOST_LIVE
from perdure.engine.worker.loading import bring_to_life, until
from perdure.model.errors import PayloadMissing, PerdureError, StoreError
from perdure.stores.answers import Claim, LoadedRun
from perdure.stores.port import LONE_CRASHES
from perdure.stores.rows import NEVER

if TYPE_CHECKING:
    from perdure.engine.worker.shell import Shell

_log = logging.getLogger("perdure.engine")

BATCH: Final = 100
#: What a look asks the store for, in words.
LOOKING: Final = "looking for due runs"


class Claims:
    """`poll`: how often the store is asked, in seconds."""

    def __init__(self, shell: Shell, poll: float) -> None:
        self._shell = shell
        self._poll = poll
        self._task: asyncio.Task[None] | None = None
        self._hint = asyncio.Event()
        self.resumed = 0
        #: Runs that came alone and are held here: when one leaves, the next may come.
        self.lone: set[bytes] = set()

    async def open(self) -> None:
        """Give stalled runs another chance, take what is due now, and go on looking."""
        await self._shell.store.unstall(list(self._shell.served.by_name))
        self.resumed += await self.take_all()
        self._task = self._shell.tasks.spawn(self._watch())

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
        while shell.served.by_name and shell.may_claim and len(shell.live) < MOST_LIVE:
            worker = shell.worker
            claims = await shell.store.claim_runs(worker, list(shell.served.by_name), BATCH)
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
            definition = await shell.served.of(claim)
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

    def _let_go(self, claim: Claim, stalled: str | None, due: int = NEVER) -> None:
        live = self._shell.live.get(claim.key)
        if live is not None:
            self._shell.drop(live)
        self._shell.tasks.spawn(self._give_back(claim, stalled, due))

    async def _give_back(self, claim: Claim, stalled: str | None, due: int) -> None:
        """Until the store takes it: a run that nobody holds and nobody may claim is stuck."""
        delay = FIRST_DELAY
        while True:
            try:
                return await self._shell.store.give_back(self._shell.worker, claim, stalled, due)
            except StoreError as error:
                _log.warning("run %s could not be given back: %s", claim.key.hex(), error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)
