"""PlannedDefinition: a definition whose steps are known beforehand: a graph's plan decides.

What graphs and sagas have in common once they are read, or put together.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

from perdure.kernel.actions import Transition
from perdure.kernel.events import RunStarted
from perdure.kernel.machine import GraphMachine
from perdure.kernel.plan import GraphPlan
from perdure.kernel.protocol import Deps
from perdure.kernel.run import Run
from perdure.kernel.straight import straight_start
from perdure.model.definition import Definition

I = TypeVar("I")  # noqa: E741  input
O = TypeVar("O")  # noqa: E741  output


class PlannedDefinition(Definition[I, O]):
    """A Graph or a Saga."""

    @property
    @abstractmethod
    def plan(self) -> GraphPlan:
        """What the kernel decides by."""

    @property
    def name(self) -> str:
        """1-64 characters of a-z 0-9 -."""
        return self.plan.name

    @property
    def version(self) -> str:
        """The label given, or the first 12 hex digits of the hash (D-36)."""
        return self.plan.version

    @property
    def hash(self) -> str:
        """SHA-256 of `source`, hexadecimal."""
        return self.plan.hash

    @property
    def planned(self) -> tuple[str, ...]:
        """The ids of its nodes or the names of its steps, in the order in which they stand."""
        return tuple(self.plan.nodes)

    def straight_start(
        self, event: RunStarted, deps: Deps, now: int
    ) -> tuple[Run, GraphMachine, Transition] | None:
        """See Definition.straight_start."""
        plan = self.plan
        started = straight_start(plan, event, deps, now)
        if started is None:
            return None
        run, made = started
        return run, GraphMachine(plan, run, deps), made

    def machine(self, run: Any, deps: Any) -> GraphMachine:
        """The kernel's machine for a run of this."""
        return GraphMachine(self.plan, run, deps)
