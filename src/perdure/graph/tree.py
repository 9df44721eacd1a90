"""The tree of a document in YAML: values as they are written, with where they stand."""

from __future__ import annotations

from typing import Literal

import msgspec


class Node(msgspec.Struct, eq=False):
    """One value of the text. `start` and `end` are offsets. Of a scalar `text` is what it says
    and `style` its quotes ("" = none); a list has `items`; a mapping has `keys` and, one for
    each, `items`. `tag`: one that was written. `weight`: about its bytes, aliases
    counted in full; `height`: levels below it."""

    kind: Literal["scalar", "list", "mapping"]
    start: int
    end: int
    tag: str | None = None
    style: str = ""
    text: str = ""
    keys: list[Node] = []
    items: list[Node] = []
    weight: int = 4
    height: int = 0
