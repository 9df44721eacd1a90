"""Scenario: a promise as data. What runs, what happens meanwhile, how it ends, what was done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from perdure.model.errors import Failure

if TYPE_CHECKING:
    from perdure.conformance.driver.acts import Act

ANY: Any = msgspec.UNSET


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    theme, name: together the name of its case. runs: the workflow; input, options: what it is
    started with. script: what happens while it runs; after: once it has ended. status and either
    output or failure (class, kind, a part of the message): its end; `holds` instead of output: what
    is true of it. done: what its steps did, in order; `loosely`: in any order, some of it maybe
    more than once. needs: capabilities.
    """

    theme: str
    name: str
    runs: Any
    input: Any = None
    options: Mapping[str, Any] = {}
    script: Sequence[Act] = ()
    after: Sequence[Act] = ()
    status: str = "completed"
    output: Any = ANY
    holds: Callable[[Any, str], bool] | None = None
    failure: tuple[type[Failure], str, str] | None = None
    done: Sequence[str] | None = None
    loosely: bool = False
    needs: tuple[str, ...] = ()

    def check(self, end: Any, status: str, done: Sequence[str], id: str) -> None:
        """Raise AssertionError unless that is how it was to end."""
        assert status == self.status, f"it is {status}, not {self.status}: {end!r}"
        if self.failure is not None:
            kind, name, message = self.failure
            assert end[:2] == (kind, name), f"it raised {end}, not {kind.__name__} of kind {name}"
            assert message in end[2], f"{message!r} is not in {end[2]!r}"
        if self.output is not ANY:
            assert end == self.output, f"it gave {end!r}, not {self.output!r}"
        if self.holds is not None:
            assert self.holds(end, id), f"it gave {end!r}"
        if self.done is not None:
            seen = sorted(set(done)) if self.loosely else list(done)
            wanted = sorted(set(self.done)) if self.loosely else list(self.done)
            assert seen == wanted, f"its steps did {list(done)}, not {list(self.done)}"
