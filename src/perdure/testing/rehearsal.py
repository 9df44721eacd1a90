"""Rehearsal: how a document went against mocks: the route taken, and everything recorded of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.testing.expectations import differences
from perdure.testing.recorded import Recorded
from perdure.testing.story import story


class Rehearsal(Recorded):
    """What a rehearsal came to.

    status: completed, failed or canceled; "waiting" when nothing would ever end it, "stalled" when
    the engine could not go on (`reason` says why). output, failure: of the run; failure is
    {kind, message, …}. seconds: how long it took in virtual time. nodes: by id, in the order in
    which they were reached. history: the run's records, as `Run.history()` gives them. notes:
    what was odd without being wrong, such as a signal that nobody took.
    """

    def svg(self) -> str:
        """A drawing of how it went; see Graph.svg."""
        return self.graph.svg(self.history)

    def mermaid(self) -> str:
        """The same as Mermaid text."""
        return self.graph.mermaid(self.history)

    def differences(self, expected: Mapping[str, Any] | None = None) -> list[str]:
        """What differs from what is expected, one a line; by default from what the mocks said.

        Keys: status, output, route, ran, skipped, not_ran, attempts, failure, duration. Raises
        InvalidRequest for others, and for nodes that the document does not have.
        """
        return differences(self, self.expected if expected is None else expected)

    def check(self, **expected: Any) -> None:
        """Raise AssertionError telling every difference and how it went instead. Without
        arguments: what the mocks expect. Raises InvalidRequest as `differences` does."""
        __tracebackhide__ = True
        found = self.differences(expected or None)
        if found:
            lines = [f"{self.graph.name} was rehearsed and differs:", *(f"  {d}" for d in found)]
            raise AssertionError("\n".join([*lines, "", self.story()]))

    def story(self) -> str:
        """How it went, a line for each node, for people."""
        return story(self)

    def __repr__(self) -> str:
        return f"<Rehearsal of {self.graph.name}: {self.status}, {' → '.join(self.route)}>"
