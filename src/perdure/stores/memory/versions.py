"""Published definitions in memory: the latest of a name, and how many runs each has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from perdure.model.errors import NotFound
from perdure.stores.answers import DefinitionSeen
from perdure.stores.labels import taken
from perdure.stores.memory.run import MemoryRun
from perdure.stores.rows import StoredDefinition


def define(known: dict[str, StoredDefinition], definition: StoredDefinition) -> None:
    """Make it known. Of one that is known, how long its runs may take its code may say anew."""
    found = known.get(definition.hash, definition)
    limit = definition.max_duration
    known[definition.hash] = msgspec.structs.replace(found, max_duration=limit)


def publish(
    known: dict[str, StoredDefinition], definition: StoredDefinition, *, relabel: bool
) -> None:
    """Make it the latest of its name, unless its label is another's."""
    hash, name = definition.hash, definition.name
    found = known.get(hash, definition)
    others = [d for d in reversed(known.values()) if d.name == name and d.hash != hash]
    same = [d for d in others if d.version == definition.version]
    if same and not relabel:
        last = max(same, key=lambda d: d.created)
        raise taken(definition, last.hash, last.created)
    created = max([definition.created, *(d.created + 1 for d in others)])
    limit = definition.max_duration
    known[found.hash] = msgspec.structs.replace(found, created=created, max_duration=limit)


def make_known(known: dict[str, StoredDefinition], definition: StoredDefinition) -> None:
    """Keep it as an older one than the latest of its name."""
    others = [d.created - 1 for d in known.values() if d.name == definition.name]
    created = min(definition.created, max(others, default=definition.created))
    known.setdefault(definition.hash, msgspec.structs.replace(definition, created=created))


def definitions_seen(
    known: dict[str, StoredDefinition], runs: Iterable[MemoryRun], name: str | None
) -> list[DefinitionSeen]:
    """By name, the latest first; of two with one time, the one that came last."""
    counts = Counter((run.hash, run.status == "running") for run in runs)
    chosen = [d for d in reversed(known.values()) if name is None or d.name == name]
    chosen.sort(key=lambda d: (d.name, -d.created))
    return [
        DefinitionSeen(
            d.hash,
            d.name,
            d.version,
            d.kind,
            d.created,
            counts[d.hash, True],
            counts[d.hash, False],
        )
        for d in chosen
    ]


def latest(known: Mapping[str, StoredDefinition], name: str) -> StoredDefinition:
    """The latest of a name. Raises NotFound."""
    named = [d for d in known.values() if d.name == name]
    if not named:
        raise NotFound(
            f"no definition with the name {name} is known here: publish the document, or let a "
            "worker that has the code open the store once"
        )
    # Of two with one time, the one that came last.
    return max(reversed(named), key=lambda d: d.created)


def latest_of_kind(known: Mapping[str, StoredDefinition], kind: str) -> list[StoredDefinition]:
    """The latest of each name, by name, where it is of this kind."""
    found: dict[str, StoredDefinition] = {}
    for one in known.values():  # of two with one time, the one that came last
        if (last := found.get(one.name)) is None or last.created <= one.created:
            found[one.name] = one
    return [found[name] for name in sorted(found) if found[name].kind == kind]
