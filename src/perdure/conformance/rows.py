"""Makers of what stores are given, and calls whose answers can be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from perdure.stores.answers import Started, Verdict
from perdure.stores.port import Store
from perdure.stores.rows import (
    NEVER,
    JournalRow,
    Message,
    NewRun,
    Outgoing,
    RunChange,
    StoredDefinition,
    WorkerInfo,
)

BODY = b'{"v":1,"t":[]}'
HASH = "h1"
BORN = 1_700_000_000_000_000


def key(n: int) -> bytes:
    """A run's key: a UUIDv7's shape, in the order of n."""
    born = (BORN // 1000 + n).to_bytes(6, "big")
    return born + b"\x70\x00\x80\x00" + n.to_bytes(6, "big")


def number(key: bytes) -> int:
    """The n of a key."""
    return int.from_bytes(key[10:], "big")


def row(
    n: int,
    seq: int,
    *,
    writer: str = "w1",
    commit: int | None = None,
    body: bytes = BODY,
    at: int = BORN,
    epoch: int = 0,
    read: int = 0,
    payloads: Sequence[bytes] = (),
    change: RunChange | None = None,
    outgoing: Sequence[Outgoing] = (),
) -> JournalRow:
    """A journal row of run n."""
    tried = seq if commit is None else commit
    return JournalRow(
        key(n), seq, at, writer, tried, body, epoch, read, payloads, change, outgoing
    )  # fmt: skip


def new(
    n: int,
    *,
    definition: str = "order",
    id: str | None = None,
    owner: str | None = None,
    ready_at: int = NEVER,
    created: int | None = None,
    first: JournalRow | None = None,
    **more: Any,
) -> NewRun:
    """Run n, with its first row."""
    return NewRun(
        key=key(n),
        definition=definition,
        id=f"run-{n}" if id is None else id,
        version="1",
        hash=HASH,
        created=BORN + n * 1000 if created is None else created,
        first=row(n, 1, writer=owner or "client") if first is None else first,
        owner=owner,
        ready_at=ready_at,
        **more,
    )


def worker(id: str) -> WorkerInfo:
    """A worker of this name."""
    return WorkerInfo(id, name="tests", host="here", pid=1)


def definition(
    hash: str = HASH, source: bytes = b"{}", created: int = BORN, version: str = "1"
) -> StoredDefinition:
    """A definition with this hash and label."""
    return StoredDefinition(hash, "order", version, "graph", source, created)


def message(
    n: int, id: str, *, kind: str = "signal", name: str = "paid", body: bytes | None = b"1"
) -> Message:
    """A message to run n."""
    return Message("order", f"run-{n}", id, kind, name, body)


def commit(store: Store, *rows: JournalRow) -> Awaitable[list[Verdict]]:
    """The verdicts on one batch."""
    return answered(lambda done: store.commit(rows, done))


def start(store: Store, *runs: NewRun) -> Awaitable[list[Started]]:
    """The answers to one batch of starts."""
    return answered(lambda done: store.start(runs, done))


async def outcomes(store: Store, *runs: NewRun) -> list[str]:
    """The answers to one batch of starts, without the keys."""
    return [started.outcome for started in await start(store, *runs)]


async def answered(send: Callable[[Callable[[Any], None]], None]) -> Any:
    """The one answer to a call that answers through a callback."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    send(answer.set_result)
    result = await answer
    if isinstance(result, Exception):
        raise result
    return list(result)
