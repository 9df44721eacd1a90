"""Versions of definitions: what is published, which one new runs get, and finding one by its label.

A version's identity is its hash; its label is for people. A label that was published cannot be
published again for other content, since nobody could tell the two apart any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from perdure.model.errors import InvalidRequest, NotFound
from perdure.model.moments import moment
from perdure.stores.answers import DefinitionSeen
from perdure.stores.port import Store
from perdure.stores.rows import StoredDefinition

#: Digits of a hash that are enough to look for it.
LEAST_DIGITS: Final = 6


class DefinitionInfo(msgspec.Struct, frozen=True):
    """A version of a definition, as the store knows it.

    `published`: when it was published last, or first used. `current`: new runs by name, and
    retries, get it. `running`, `ended`: how many of its runs go on, and have ended.
    """

    name: str
    version: str
    hash: str
    kind: str
    published: datetime
    current: bool
    running: int
    ended: int


def infos(seen: Sequence[DefinitionSeen]) -> list[DefinitionInfo]:
    """What a store lists (by name, the latest first), as users see it."""
    found: list[DefinitionInfo] = []
    for one in seen:
        current = not found or found[-1].name != one.name
        found.append(
            DefinitionInfo(
                one.name, one.version, one.hash, one.kind, moment(one.created), current,
                one.running, one.ended,
            )
        )  # fmt: skip
    return found


def choose(known: Sequence[DefinitionInfo], name: str, version: str) -> DefinitionInfo:
    """The version with this label (of several the one published last), or whose hash begins so.
    Raises NotFound, InvalidRequest where several hashes do."""
    for one in known:
        if one.version == version:
            return one
    hashes = [one for one in known if one.hash.startswith(version.lower())]
    if len(version) >= LEAST_DIGITS and hashes:
        if len(hashes) > 1:
            raise InvalidRequest(f"several versions of {name} begin with {version}: give more")
        return hashes[0]
    if not known:
        raise NotFound(f"no definition with the name {name}")
    there = ", ".join(one.version for one in known[:10])
    raise NotFound(f"{name} has no version {version}; there are {there}")


async def version_of(store: Store, name: str, version: str | None) -> StoredDefinition:
    """A version by label or hash; None: the current one. Raises as `choose` does."""
    if version is None:
        return await store.latest_definition(name)
    chosen = choose(infos(await store.definitions(name)), name, version)
    return await store.definition(chosen.hash)
