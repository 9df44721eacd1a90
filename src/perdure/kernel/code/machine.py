"""CodeMachine: decides for a run of a workflow function by running it on.

An event's outcome resolves the call that awaited it, the code runs until it waits again, and what
it asked for on the way is the transition. What is most often decided, that a step completed at its
first attempt, is decided in place; all else, and whatever is out of the ordinary, by the handlers
(deciding.py). Both come to the same, action for action.
"""

from __future__ import annotations

from typing import Any

from perdure.kernel.actions import Transition
from perdure.kernel.code.calls import NOTHING
from perdure.kernel.code.deciding import decide_generally
from perdure.kernel.code.running import Running
from perdure.kernel.code.turns import AT_REST
from perdure.kernel.events import Event, NodeCompleted
from perdure.kernel.onward import Decided
from perdure.kernel.protocol import Decision, Load
from perdure.kernel.run import NodeState
from perdure.model.errors import StoreError


class CodeMachine(Running):
    """Decides for one run of a workflow. `run` is its snapshot."""

    __slots__ = ()

    def decide(self, event: Event) -> Decided | Load:
        """See kernel.protocol.Machine.decide. Raises Stuck too: the run stalls. With code that was
        given up, only the run's end is decided."""
        if type(event) is not NodeCompleted:
            return decide_generally(self, event)
        run, calls, node, task = self.run, self.calls, event.node, event.task
        call: Any = calls.open.get(node)
        if call is None or not call.first or call.task != task or event.attempt or run.signals:
            return decide_generally(self, event)
        # All that asyncio's futures say of who waits, and nothing public does: each callback with
        # its context, in order. None of them is there: None.
        try:
            ((resume, context),) = call._callbacks
        except (TypeError, ValueError):  # no task awaits it, or several do
            return decide_generally(self, event)
        # From here on it is decided: `calls.report` stands for what is recorded of it. The one task
        # that waits is resumed at once, not by way of the loop's callbacks.
        loop, before = calls.loop, run.at
        loop.now = run.at = now = max(self.deps.now(), before)
        run.completed = number = run.completed + 1
        run.nodes[node] = NodeState(task, "completed", 0, None, number)
        calls.report = event
        del calls.open[node]
        call.remove_done_callback(resume)
        call.set_result(event.output)
        try:
            loop.run_ready(context, resume, call)
            if calls.new_timers or not calls.open or self.root.done():  # type: ignore[union-attr]
                self.now = now
                self.turn_over()
                self.rest()
                calls = self.calls  # others, where the code began anew
            made = calls.onward or Transition(now, calls.recording())
        except BaseException as error:
            run.at = before
            self.calls.at_rest()
            self.broken_off(error)
            raise
        calls.onward = None
        calls.actions = NOTHING
        calls.loop.turn = AT_REST
        run.crashes = 0
        return made

    def apply(self, event: Event) -> Decision:
        """See kernel.protocol.Machine.apply."""
        while isinstance(made := self.decide(event), Load):
            answer = yield made
            for id in made.signals:
                if id not in answer.signals:
                    raise StoreError(f"the recorded payload of signal {id} was not found")
            for node in made.outputs:
                if node not in answer.outputs:
                    raise StoreError(f"the recorded output of node {node} was not found")
            self.calls.payloads = {**self.calls.payloads, **answer.signals}
            self.outputs = {**self.outputs, **answer.outputs}
        return made
