"""Notes: what steps noted for later ones, by key; the last word of a key counts.

Never changed: to add notes gives others, so that whoever was given these sees no later ones, and a
decision that is given up has nothing to put back. They stand in layers, each larger than the next,
as the places of a binary number: a note is copied a few times in a run, not by each that follows.
"""

from __future__ import annotations

from collections.abc import ItemsView, Mapping

import msgspec
from msgspec import Raw


class Notes(msgspec.Struct, frozen=True, gc=False):
    """As JSON text by key. `size`: bytes of all keys and values; `layers`: the oldest first."""

    layers: tuple[dict[str, Raw], ...] = ()
    count: int = 0
    size: int = 0

    def get(self, key: str) -> Raw | None:
        """What was noted last under the key."""
        for layer in reversed(self.layers):
            if (note := layer.get(key)) is not None:
                return note
        return None

    def __len__(self) -> int:
        return self.count

    def items(self) -> ItemsView[str, Raw]:
        """All of them."""
        found: dict[str, Raw] = {}
        for layer in self.layers:
            found.update(layer)
        return found.items()

    def adding(self, more: Mapping[str, Raw]) -> Notes:
        """These and more. Raises UnicodeEncodeError for a key that is not Unicode."""
        count, size = self.count, self.size
        for key, note in more.items():
            before = self.get(key)
            if before is None:
                count, size = count + 1, size + len(key.encode())
            else:
                size -= memoryview(before).nbytes
            size += memoryview(note).nbytes
        layers, youngest = list(self.layers), dict(more)
        while layers and len(layers[-1]) <= len(youngest):
            youngest = {**layers.pop(), **youngest}
        return Notes((*layers, youngest), count, size)


NO_NOTES = Notes()
