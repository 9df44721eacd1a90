"""Beats: this worker says that it lives, and hears what it holds.

A beat extends the lease, corrects the clock, tells which runs have mail, and reconciles: what the
store has under this worker's name and nobody here holds is given back, what is held here and the
store has given to others is dropped. A worker that was declared dead drops every run and
registers under a new id. Once the lease may be over, by this process's own monotonic clock, no
effect starts until a beat says that it is not.

The lease itself is extended by a thread too (watchdog.py), so that a busy loop loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from perdure.engine.clock import error_of
from perdure.engine.runs.reading import heard_of
from perdure.model.durations import SECOND
from perdure.model.errors import NotFound, StoreError
from perdure.stores.answers import Beat, Claim
from perdure.stores.port import LEASE

if TYPE_CHECKING:
    from perdure.engine.runs.live_run import LiveRun
    from perdure.engine.worker.shell import Shell

_log = logging.getLogger("perdure.engine")

#: How often a worker beats that holds no run, in seconds.
IDLE_EVERY: Final = 2.0
#: What a beat asks the store for, in words.
BEATING: Final = "saying that this worker lives"


class Beats:
    """`every`: how often a worker beats that holds runs, in seconds."""

    def __init__(self, shell: Shell, every: float) -> None:
        self._shell = shell
        longest = LEASE / SECOND / 6
        self._every = min(every, longest)
        self._idle_every = min(max(every, IDLE_EVERY), longest)
        self._task: asyncio.Task[None] | None = None
        self._mail: asyncio.Task[None] | None = None
        self._hint = asyncio.Event()
        #: Runs under this worker's name that nobody here held at the last beat.
        self._strange: set[bytes] = set()

    def open(self) -> None:
        """Beat from now on."""
        self._task = self._shell.tasks.spawn(self._go_on())
        self._mail = self._shell.tasks.spawn(self._listen())

    async def close(self) -> None:
        """Beat no more."""
        tasks = [task for task in (self._task, self._mail) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def hint(self) -> None:
        """A run may have mail: ask now."""
        self._hint.set()

    async def _go_on(self) -> None:
        shell, last = self._shell, self._shell.clock.monotonic()
        while True:
            await asyncio.sleep(self._every)
            now = shell.clock.monotonic()
            if not shell.live and now - last < self._idle_every:
                continue
            last = now
            try:
                await self.beat()
                shell.outages.note(BEATING, None)
                shell.parking.look()
            except StoreError as error:
                shell.outages.note(BEATING, error)
            except Exception:  # whatever it was, a worker that stops beating loses its runs
                _log.exception("beating failed")

    async def _listen(self) -> None:
        while True:
            await self._hint.wait()
            self._hint.clear()
            if self._shell.live:
                try:
                    self._tell(await self._shell.store.mailed(self._shell.worker))
                except StoreError as error:
                    _log.warning("could not ask for mail (%s): the next beat does", error)
                except Exception:
                    _log.exception("asking for mail failed")

    def _tell(self, mail: Mapping[bytes, int]) -> None:
        for key, newest in mail.items():
            live = self._shell.live.get(key)
            if live is not None:
                heard_of(self._shell, live, newest)

    async def beat(self) -> None:
        """One beat. Raises StoreError."""
        shell = self._shell
        if shell.struck_off:
            await self._register_anew()
            return
        worker, held = shell.worker, dict(shell.live)
        began, before = shell.clock.monotonic(), shell.clock.now()
        answer = await shell.store.beat(worker)
        if not answer.alive:
            await self._begin_anew()
            return
        shell.clock.correct(error_of(before, answer.now, shell.clock.now()))
        shell.leased(began + (answer.until - answer.now) / SECOND)
        self._reconcile(held, answer)
        self._tell(answer.mail)

    async def _begin_anew(self) -> None:
        """Declared dead: the runs are others' now, and so is the name."""
        shell = self._shell
        _log.error(
            "worker %s was declared dead, since its lease ran out: its %d run(s) go on elsewhere; "
            "it begins anew under another id", shell.worker, len(shell.live),
        )  # fmt: skip
        shell.struck_off, shell.lease_over = True, 0.0
        self._drop_all()
        self._strange = set()
        await self._register_anew()

    async def _register_anew(self) -> None:
        """Raises StoreError: the next beat tries again, and until then no run is held here."""
        await self._shell.register()
        self._drop_all()  # what was being loaded as it was declared dead
        self._shell.claims.look()

    def _drop_all(self) -> None:
        self._shell.births.close()
        for live in list(self._shell.live.values()):
            self._shell.drop(live)

    def _reconcile(self, before: Mapping[bytes, LiveRun], answer: Beat) -> None:
        shell = self._shell
        shell.births.beat()
        for key, live in before.items():
            if key in answer.held or shell.live.get(key) is not live:
                continue
            # One with a row under way is told by the answer to it.
            if not live.dead and not live.parking and not live.under_way:
                _log.warning(
                    "%s/%s is another worker's now: dropped here",
                    live.definition.name, live.run_id,
                )  # fmt: skip
                shell.drop(live)
        strange = {key for key in answer.held if key not in shell.live and key not in shell.in_hand}
        for key in strange & self._strange:
            shell.tasks.spawn(self._give_back(key, shell.worker))
        self._strange = strange

    async def _give_back(self, key: bytes, worker: str) -> None:
        """Nobody here holds this run: let others have it."""
        shell = self._shell
        try:
            row = (await shell.store.load(key)).run
            if row.owner == worker and key not in shell.live and key not in shell.in_hand:
                claim = Claim(key, row.definition, row.hash, row.epoch)
                await shell.store.give_back(worker, claim, None)
                _log.warning("%s/%s was held by nobody: given back", row.definition, row.id)
        except NotFound:
            return
        except StoreError as error:
            _log.warning("run %s could not be given back: %s", key.hex(), error)
