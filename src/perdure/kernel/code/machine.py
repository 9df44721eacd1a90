"""CodeMachine: decides for a run of a workflow function by running it on.

An event's outcome resolves the call that awaited it, the code runs until it waits again, and what
it asked for on the way is the transition. Decisions cannot be rolled back, since code ran: so
everything that can be refused or has to be loaded comes before, and code that cannot go on stops
the run with nothing recorded (`Stuck`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from perdure.kernel.actions import ResolveWait, Transition
from perdure.kernel.code.calls import NONE
from perdure.kernel.code.codeless import decide_without_code
from perdure.kernel.code.happened import HANDLERS
from perdure.kernel.code.reopening import on_run_retried
from perdure.kernel.code.running import Running
from perdure.kernel.code.straight import straight_on
from perdure.kernel.code.turns import AT_REST, DECIDING
from perdure.kernel.events import Event, NodeCompleted, RunRetried
from perdure.kernel.protocol import Decision, Load
from perdure.model.errors import InvalidRequest, StoreError

_HANDLERS: Final[dict[type, Callable[[Any, Any], Any]]] = {**HANDLERS, RunRetried: on_run_retried}


class CodeMachine(Running):
    """Decides for one run of a workflow. `run` is its snapshot."""

    __slots__ = ()

    def decide(self, event: Event) -> Transition | Load:
        """See kernel.protocol.Machine.decide. Raises Stuck too: the run stalls. With code that was
        given up, only the run's end is decided."""
        if type(event) is NodeCompleted and (made := straight_on(self, event)) is not None:
            return made
        handler = decide_without_code if self.given_up else _HANDLERS.get(type(event))
        if handler is None:
            raise InvalidRequest(f"unknown event {type(event).__name__}")
        calls, run = self.calls, self.run
        if run.signals and not self.given_up:
            apart = [kept.id for kept in run.signals if kept.payload is None]
            apart = [id for id in apart if id not in calls.payloads]
            if apart:
                return Load(signals=tuple(apart))
        if calls.stuck is not None and not self.given_up:
            raise calls.stuck
        self.now = now = max(self.deps.now(), run.at)
        calls.actions = []
        before, run.at = run.at, now
        calls.loop.turn = DECIDING
        try:
            ignored = handler(self, event)
        except BaseException:
            run.at = before
            raise
        finally:
            self.calls.loop.turn = AT_REST
        if ignored is not None:
            run.at = before
            return ignored if type(ignored) is Load else Transition(now, [], ignored)
        run.crashes = 0
        calls = self.calls  # others, where the code began anew
        actions, calls.actions = calls.actions, NONE
        return Transition(now, actions, None, isinstance(actions[0], ResolveWait))

    def apply(self, event: Event) -> Decision:
        """See kernel.protocol.Machine.apply."""
        while isinstance(made := self.decide(event), Load):
            answer = yield made
            for id in made.signals:
                if id not in answer.signals:
                    raise StoreError(f"the recorded payload of signal {id} was not found")
                self.calls.payloads[id] = answer.signals[id]
            for node in made.outputs:
                if node not in answer.outputs:
                    raise StoreError(f"the recorded output of node {node} was not found")
                self.outputs[node] = answer.outputs[node]
        return made
