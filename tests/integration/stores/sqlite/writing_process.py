"""A process that writes until it is killed: batches of one row for each of sixteen runs.

`python -m tests.integration.stores.sqlite.writing_process PATH` prints the number of each batch
once it is durable.
"""

from __future__ import annotations

import asyncio
import sys

from perdure.conformance.rows import commit, new, row, start, worker
from perdure.stores.sqlite import SqliteStore

RUNS = 16


async def write(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.register(worker("victim"))
    await start(store, *[new(n, owner="victim") for n in range(RUNS)])
    seq = 2
    while True:
        # Some rows carry payloads, so that a batch is more than one statement.
        batch = [
            row(n, seq, writer="victim", body=b"%300d" % seq, payloads=[b"p" * 5000] * (n % 5 == 0))
            for n in range(RUNS)
        ]
        assert set(await commit(store, *batch)) == {"accepted"}
        sys.stdout.write(f"{seq}\n")
        sys.stdout.flush()
        seq += 1


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1]))
