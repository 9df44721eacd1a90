"""Listing: runs of several queries as one list, the newest first, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from perdure.stores.answers import RunRow
from perdure.stores.port import RunQuery, Store


async def newest_first(store: Store, queries: Sequence[RunQuery]) -> AsyncIterator[RunRow]:
    """The runs that these find, none by two of them, by the time they were created and their key,
    the latest first. No more than a page of each is held."""
    lists = [_found(store, query) for query in queries]
    heads = [(row, rows) for rows in lists if (row := await anext(rows, None)) is not None]
    while heads:
        first = max(heads, key=lambda head: (head[0].created, head[0].key))
        yield first[0]
        following = await anext(first[1], None)
        heads = [head for head in heads if head is not first]
        if following is not None:
            heads.append((following, first[1]))


async def _found(store: Store, query: RunQuery) -> AsyncIterator[RunRow]:
    while True:
        page = await store.find(query)
        for row in page:
            yield row
        if len(page) < query.limit:
            return
        query = msgspec.structs.replace(query, before=page[-1].key)
