"""GraphMachine: one event in, one transition out.

`apply` is the single entry point. Handlers are named after their events; each checks that the
event still matters, emits actions, and routes forward. The machine lives as long as its run is in
memory and must be given one event at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from perdure.kernel.actions import CreateTask, OpenRun, Transition
from perdure.kernel.events import DeadlineReached, Event, NodeCompleted, NodeFailed, RunStarted
from perdure.kernel.finish import finish, finish_at_deadline
from perdure.kernel.plan import GraphPlan
from perdure.kernel.protocol import Decision, Deps, Handling, Load
from perdure.kernel.retries import fail_or_retry
from perdure.kernel.routing import activate, propagate
from perdure.kernel.run import Run
from perdure.kernel.tasks import complete, stale
from perdure.kernel.turn import NeedLoad, Turn
from perdure.model.errors import InvalidRequest


class GraphMachine:
    """Decides for one run of a graph. `run` is its snapshot, changed by what is decided."""

    __slots__ = ("_turn", "run")

    def __init__(self, plan: GraphPlan, run: Run, deps: Deps) -> None:
        self.run = run
        self._turn = Turn(plan, run, deps)

    def apply(self, event: Event) -> Decision:
        """See kernel.protocol.Machine.apply."""
        handler = HANDLERS.get(type(event))
        if handler is None:
            raise InvalidRequest(f"unknown event {type(event).__name__}")
        turn, run = self._turn, self.run
        # Time never goes back, whoever takes over with whatever clock.
        now = max(turn.deps.now(), run.at)
        while True:
            turn.begin(now)
            try:
                handler(self, event)
                if turn.ignored is None and not run.active:
                    finish(turn)
                break
            except NeedLoad as need:
                turn.roll_back()
                nodes = need.nodes
            except BaseException:
                turn.roll_back()
                raise
            # Nothing is held while it waits: a decision given up here, however late its generator
            # is collected, must not touch what later events decided.
            turn.loaded(nodes, (yield Load(nodes)))
        turn.keep()
        return Transition(now, turn.actions, turn.ignored)

    def handling(self, node: str) -> Handling:
        """See kernel.protocol.Machine.handling."""
        planned = self._turn.plan.nodes[node]
        return Handling(planned.type, planned.timeout)

    # ------------------------------------------------------------------ handlers

    def _on_run_started(self, event: RunStarted) -> None:
        turn, plan = self._turn, self._turn.plan
        if self.run.nodes or self.run.status != "new":
            raise InvalidRequest("the run has already started")
        start = event.start_node or plan.entry
        if start is None:
            roots = ", ".join(plan.shape.entries)
            raise InvalidRequest(
                f"graph {plan.name} has several nodes without incoming edges ({roots}): "
                "name one as `entry` in the document or as start_node"
            )
        if start not in plan.nodes:
            raise InvalidRequest(f"start node {start} is not in graph {plan.name}")
        turn.emit_for_run(
            OpenRun(
                plan.name,
                event.id,
                plan.version,
                plan.hash,
                event.python,
                event.input,
                config=event.config,
                metadata=event.metadata,
                deadline=event.deadline,
            )
        )
        propagate(turn, activate(turn, start))
        self._refuse_routing_errors()

    def _refuse_routing_errors(self) -> None:
        """A routing error while starting rejects the start (D-5), nothing is recorded."""
        for action in self._turn.actions:
            failure = action.failure if isinstance(action, CreateTask) else None
            if failure is not None and failure.kind == "routing":
                raise InvalidRequest(failure.message)

    def _on_node_completed(self, event: NodeCompleted) -> None:
        turn = self._turn
        turn.ignored = stale(turn, event)
        if turn.ignored is not None:
            return
        complete(turn, event)
        if self.run.status == "running":
            propagate(turn, turn.plan.shape.successors.get(event.node, ()))

    def _on_node_failed(self, event: NodeFailed) -> None:
        turn = self._turn
        turn.ignored = stale(turn, event)
        if turn.ignored is None:
            fail_or_retry(turn, event)

    def _on_deadline_reached(self, event: DeadlineReached) -> None:
        turn, run = self._turn, self.run
        if run.status != "running":
            turn.ignored = f"the run is already {run.status}"
        elif run.deadline is None or turn.now < run.deadline:
            turn.ignored = "the run's deadline has not come yet"
        else:
            finish_at_deadline(turn)


HANDLERS: Final[Mapping[type, Callable[[GraphMachine, Any], None]]] = {
    RunStarted: GraphMachine._on_run_started,
    NodeCompleted: GraphMachine._on_node_completed,
    NodeFailed: GraphMachine._on_node_failed,
    DeadlineReached: GraphMachine._on_deadline_reached,
}
