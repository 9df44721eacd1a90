"""Turn: the working state while a machine decides on one event.

`emit` records an action and folds it at once, so the next decision within the same event sees
it (G-5); what it replaced is kept until the decision stands, so that giving up puts the snapshot
back as it was (D-10). Where a decision needs an output that is not in memory it raises NeedLoad:
the machine rolls back, asks, and decides again from the start, drawing the same ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Raw

from perdure.kernel.actions import AnyAction, CancelTasks, ReopenRun
from perdure.kernel.fold import FOLDS
from perdure.kernel.moves import NEW
from perdure.kernel.plan import GraphPlan
from perdure.kernel.protocol import Deps, Load, Loaded
from perdure.kernel.run import KeptSignal, NodeState, Run, put_back
from perdure.kernel.scope import SystemView, TaskViews
from perdure.model.errors import PayloadMissing
from perdure.model.failure import FailureRecord

#: The output of a control node.
EMPTY: Final = Raw(b"{}")

#: Between decisions: neither is ever changed.
_NOTHING: Final[list[AnyAction]] = []
_NO_PAYLOADS: Final[Mapping[str, Raw]] = {}


class NeedLoad(Exception):
    """This is needed before the decision can be made."""

    def __init__(self, load: Load) -> None:
        super().__init__(load)
        self.load = load


class Turn:
    """One run's snapshot, its definition's plan, and the decision in the making."""

    __slots__ = (
        "_saved", "_scope", "_undo", "_used", "_whole", "actions", "answers", "deps", "drawn",
        "ignored", "kept", "now", "outputs", "payloads", "plan", "run", "signal_delivered", "views",
    )  # fmt: skip

    # Of the decision in the making, set by `begin`: most runs never come to that.
    actions: list[AnyAction]
    ignored: str | None
    signal_delivered: bool
    _saved: Run
    _used: int

    def __init__(self, plan: GraphPlan, run: Run, deps: Deps) -> None:
        self.plan = plan
        self.run = run
        self.deps = deps
        self.now = 0
        #: Outputs in memory: of nodes that completed while this machine lived, or were loaded.
        self.outputs: dict[str, Raw] = {}
        #: What templates see of completed nodes whose outputs were asked for.
        self.views: dict[str, Any] = {}
        #: Payloads of kept signals that stand apart, loaded for the decision in the making.
        self.payloads: Mapping[str, Raw] = _NO_PAYLOADS
        self._scope: dict[str, Any] | None = None
        self._undo: list[tuple[str, NodeState | None]] = []
        #: Nodes, outputs and views as they were before the run was reopened in this decision.
        self._whole: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] | None = None
        #: What gates said while this decision is in the making, and of which input: asked once,
        #: however often the decision is made again.
        self.answers: dict[str, tuple[Raw | None, bool | FailureRecord]] = {}
        #: Ids drawn for decisions that were not made: they are drawn again first.
        self.drawn: list[str] = []
        #: See GraphPlan.kept.
        self.kept = plan.kept

    # ------------------------------------------------------------------ one decision

    def begin(self, now: int) -> None:
        """A new try at a decision, at this time."""
        self.now = now
        self.actions = []
        self.ignored = None
        self.signal_delivered = False
        self._used = 0
        # copy.copy() by its short way: this is done for every event.
        self._saved = self.run.__copy__()  # type: ignore[attr-defined]
        self.run.at = now

    def emit(self, action: Any) -> None:
        """An action about a node: record it and fold it."""
        node = action.node
        self._undo.append((node, self.run.nodes.get(node)))
        FOLDS[type(action)](self.run, action)
        self.actions.append(action)

    def emit_for_run(self, action: Any) -> None:
        """An action about the run as a whole."""
        FOLDS[type(action)](self.run, action)
        self.actions.append(action)

    def emit_cancel(self, action: CancelTasks) -> None:
        """Several nodes end together: record it and fold it."""
        nodes = self.run.nodes
        self._undo += [(node, nodes.get(node)) for node in action.nodes]
        self.emit_for_run(action)

    def emit_reopen(self, action: ReopenRun) -> None:
        """The first action of a retry: what the reset nodes did is forgotten, also here."""
        assert not self.actions, "a run is reopened before anything else"
        self._whole = (dict(self.run.nodes), dict(self.outputs), dict(self.views))
        self.emit_for_run(action)
        for node in action.reset:
            self.outputs.pop(node, None)
            self.views.pop(node, None)
        self._scope = None  # input, config and version may be new

    def keep(self) -> list[AnyAction]:
        """The decision stands, as these actions: nothing of it can be rolled back any more."""
        actions, self.actions = self.actions, _NOTHING
        self._undo.clear()
        self._whole = None
        self.payloads = _NO_PAYLOADS
        if self._used:
            del self.drawn[: self._used]
        if self.answers:
            self.answers.clear()
        if self.ignored is not None:
            self.run.at = self._saved.at
        else:
            self.run.crashes = 0
        return actions

    def roll_back(self) -> None:
        """Put the snapshot back as it was at `begin`."""
        nodes = self.run.nodes
        for node, state in reversed(self._undo):
            if state is None:
                nodes.pop(node, None)
            else:
                nodes[node] = state
            self.outputs.pop(node, None)
            self.views.pop(node, None)
        self._undo.clear()
        if self._whole is not None:
            # Replaced whole, so that nodes stand in the order in which they were reached.
            current: tuple[dict[str, Any], ...] = (nodes, self.outputs, self.views)
            for now, before in zip(current, self._whole, strict=True):
                now.clear()
                now.update(before)
            self._whole = self._scope = None
        put_back(self.run, self._saved)
        self.actions = []
        if self.run.status == NEW:
            # Input and identity came with the OpenRun that is gone.
            self._scope = None

    def new_id(self) -> str:
        """A fresh task id; a decision made again, after a load or an error, draws the same ids."""
        drawn, used = self.drawn, self._used
        self._used = used + 1
        if used < len(drawn):
            return drawn[used]
        id = self.deps.new_id()
        drawn.append(id)
        return id

    @property
    def failed_now(self) -> bool:
        """A node failed for good in this decision, or the run was reopened."""
        return self.run.failures is not self._saved.failures

    @property
    def gives_up(self) -> bool:
        """A node failed for good, and the definition wants nothing new to begin then; or the run
        is to stop."""
        run = self.run
        if run.stopping is not None:
            return True
        return self.plan.on_failure != "continue" and len(run.failures) > run.old_failures

    # ------------------------------------------------------------------ outputs and scope

    def remember(self, node: str, output: Raw) -> None:
        """A node completed with this output; kept only if something may read it."""
        if self.kept is None or node in self.kept:
            self.outputs[node] = output

    def loaded(self, load: Load, answer: Loaded) -> None:
        """The answer to a Load. Raises PayloadMissing when a part of it is missing (D-9)."""
        for node in load.outputs:
            if node not in answer.outputs:
                raise PayloadMissing(f"the recorded output of node {node} was not found")
        for signal in load.signals:
            if signal not in answer.signals:
                raise PayloadMissing(f"the recorded payload of signal {signal} was not found")
        for node in load.outputs:
            self.outputs[node] = answer.outputs[node]
        if load.signals:
            found = {signal: answer.signals[signal] for signal in load.signals}
            self.payloads = {**self.payloads, **found}

    def payload(self, signal: KeptSignal) -> Raw:
        """A kept signal's payload. Raises NeedLoad."""
        if signal.payload is not None:
            return signal.payload
        if signal.id not in self.payloads:
            raise NeedLoad(Load(signals=(signal.id,)))
        return self.payloads[signal.id]

    def need(self, reads: Iterable[str] | None) -> None:
        """Make sure that the outputs of the completed ones of these nodes are in memory.

        `reads` None: any node may be read. Raises NeedLoad with all that are missing.
        """
        nodes, outputs = self.run.nodes, self.outputs
        missing = []
        for node in nodes if reads is None else reads:
            if node in outputs:
                continue
            state = nodes.get(node)
            if state is not None and state.status == "completed" and not self._is_empty(node):
                missing.append(node)
        if missing:
            raise NeedLoad(Load(tuple(dict.fromkeys(missing))))

    def _is_empty(self, node: str) -> bool:
        """The output of a FORK or JOIN is known without loading (D-9)."""
        planned = self.plan.nodes.get(node)
        if planned is None or planned.type not in ("FORK", "JOIN"):
            return False
        self.outputs[node] = EMPTY
        return True

    def scope(self, reads: Iterable[str] | None) -> Mapping[str, Any]:
        """The variables for templates that read these nodes. Raises NeedLoad."""
        views, outputs = self.views, self.outputs
        all_there = reads is not None
        for node in self.run.nodes if reads is None else reads:
            if node in views:
                continue
            if node not in outputs:
                self.need(reads)
            if node in outputs:
                output = self.deps.codec.decode(outputs[node])
                views[node] = {"status": "completed", "output": output}
            else:
                all_there = False
        scope = self._scope
        if scope is None:
            self._scope = scope = self._new_scope()
        # A plain dict where it will do: templates read it several times faster.
        scope["tasks"] = views if all_there else TaskViews(views, self.run.nodes)
        scope["system"].at = self.now
        return scope

    def _new_scope(self) -> dict[str, Any]:
        run, decode = self.run, self.deps.codec.decode
        return {
            "input": None if run.input is None else decode(run.input),
            "config": {} if run.config is None else decode(run.config),
            "system": SystemView(run.id, run.definition, run.version),
        }
