"""Processes that share one file: posters, and workers that read mail and park.

`python -m …mail_process <file> post <name> <how many>` or `… work <name>`. A worker goes on until
its standard input ends. A row's body says which messages it has applied.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys

from perdure.conformance.rows import commit, message, row, worker
from perdure.stores.answers import Claim
from perdure.stores.rows import NEVER, Park
from perdure.stores.sqlite import SqliteStore

RUNS = 12


async def post(store: SqliteStore, name: str, count: int) -> None:
    chance = random.Random(name)
    for n in range(count):
        sent = message(chance.randrange(RUNS), f"{name}-{n}")
        again = 2 if n % 10 == 0 else 1
        answers = [await store.post([sent]) for _ in range(again)]
        assert [a[0].outcome for a in answers] == ["posted", "duplicate"][:again]
        await asyncio.sleep(0.0005)


class Worker:
    """Holds each run for as long as it has mail, then parks it."""

    def __init__(self, store: SqliteStore, name: str) -> None:
        self.store = store
        self.name = name
        self.tries = 0
        self.hint = asyncio.Event()

    async def work(self) -> None:
        await self.store.register(worker(self.name))
        self.store.subscribe(self.hint.set)
        ended = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
        turns = 0
        while not ended.done():
            turns += 1
            if turns % 20 == 0:
                assert (await self.store.beat(self.name)).alive
            claims = await self.store.claim_runs(self.name, ["order"], 3)
            await asyncio.gather(*[self.hold(claim) for claim in claims])
            if not claims:
                self.hint.clear()
                await asyncio.wait({ended, asyncio.ensure_future(self.hint.wait())}, timeout=0.2)
        await self.store.unregister(self.name)

    async def hold(self, claim: Claim) -> None:
        loaded = await self.store.load(claim.key)
        seq, read = loaded.journal[-1].seq, loaded.journal[-1].read
        mail = list(loaded.mail)
        n = int.from_bytes(claim.key[10:], "big")
        while True:
            while mail:
                assert [m.n for m in mail] == list(range(read + 1, read + 1 + len(mail)))
                seq, read, self.tries = seq + 1, mail[-1].n, self.tries + 1
                body = json.dumps([m.id for m in mail]).encode()
                sent = row(n, seq, writer=self.name, commit=self.tries, body=body, read=read)
                assert await commit(self.store, sent) == ["accepted"]
                mail = list(await self.store.mail(claim.key, read))
            park = Park(claim.key, claim.epoch, read, NEVER)
            if (await self.store.park(self.name, [park]))[0]:
                return
            mail = list(await self.store.mail(claim.key, read))
            assert mail, "it was not parked, so there is mail"


async def main(path: str, what: str, name: str, *count: str) -> None:
    store = SqliteStore(path, synchronous="normal", busy_timeout=30)
    await store.open()
    try:
        if what == "post":
            await post(store, name, int(count[0]))
        else:
            await Worker(store, name).work()
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
