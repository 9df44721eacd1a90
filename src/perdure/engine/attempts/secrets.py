"""Secrets: values that runs use and nobody records.

Looked up anew for each attempt, never kept in a journal, and taken out of every text on its way
to a failure or a log. The source is the application's; the environment is one for the CLI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Self, TypeAlias
from urllib.parse import quote, quote_plus

import msgspec

from perdure.model.errors import InvalidOptions

Source: TypeAlias = Mapping[str, str] | Callable[[str], str | None]

ENVIRONMENT_PREFIX: Final = "PERDURE_SECRET_"
#: Shorter values are in any text by chance: hiding them would only spoil messages.
SHORTEST_HIDDEN: Final = 4
#: Rotated values remembered for hiding; the oldest go first.
_REMEMBERED: Final = 1000


class Secrets(Mapping[str, str]):
    """Looks secrets up by name, and hides every value it ever gave.

    source: a mapping, or a function from a name to the value or None; None = no secrets at all.
    The function is called on the engine's loop for each attempt that needs it: it should be quick.
    As a mapping it lists the names asked for so far: a function cannot say what else it knows.
    """

    def __init__(self, source: Source | None = None) -> None:
        self._source: Source = {} if source is None else source
        self._given: dict[str, str] = {}
        self._asked: set[str] = set()
        self._hiding: re.Pattern[str] | None = None
        self._names: dict[str, str] = {}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Secrets in `PERDURE_SECRET_<NAME>`, see `variable_of`."""

        def look_up(name: str) -> str | None:
            return environment.get(variable_of(name))

        return cls(look_up)

    def __getitem__(self, name: str) -> str:
        """The value now. Raises KeyError if there is none, InvalidOptions if it is not text."""
        value = self._source(name) if callable(self._source) else self._source.get(name)
        if value is None:
            raise KeyError(name)
        if not isinstance(value, str):
            raise InvalidOptions(f"secret {name!r} is a {type(value).__name__}: give text")
        self._asked.add(name)
        if self._given.get(value) is None and len(value) >= SHORTEST_HIDDEN:
            if len(self._given) >= _REMEMBERED:
                del self._given[next(iter(self._given))]
            self._given[value] = name
            self._hiding = None
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in sorted(self._asked) if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True  # nothing asked for yet is not nothing there

    def redact(self, text: str) -> str:
        """The text with every value ever given, of 4 characters or more, as `[secret NAME]`.

        Values are also found as they stand in URLs and in JSON.
        """
        if not self._given:
            return text
        hiding = self._hiding
        if hiding is None:
            hiding = self._prepare()
        return hiding.sub(lambda found: f"[secret {self._names.get(found[0], '')}]", text)

    def _prepare(self) -> re.Pattern[str]:
        names = {form: name for value, name in self._given.items() for form in written(value)}
        # Longest first: a value that holds another one is hidden whole.
        forms = sorted(names, key=len, reverse=True)
        self._names = names
        self._hiding = re.compile("|".join(map(re.escape, forms)))
        return self._hiding

    def __repr__(self) -> str:
        return "<Secrets>"


def variable_of(name: str) -> str:
    """The environment variable of a secret: `api-key` is in PERDURE_SECRET_API_KEY."""
    return ENVIRONMENT_PREFIX + re.sub(r"\W", "_", name).upper()


def written(value: str) -> set[str]:
    """The ways a value is written: as it is, in a URL, in JSON, in a Python string."""
    return {
        value,
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
        msgspec.json.encode(value)[1:-1].decode(),
        repr(value)[1:-1],
    }
