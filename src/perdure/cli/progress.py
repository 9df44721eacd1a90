"""Progress of one run while it happens: what becomes durable, told to whoever shows it.

Either this process works on the run, then the engine says what it records, or another one does,
then its records are read from the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from perdure.cli.node_view import OPEN, Change, NodeView
from perdure.cli.nodes import NodeBook
from perdure.client.history import told_of
from perdure.kernel.plan import UNDO
from perdure.model.moments import moment

if TYPE_CHECKING:
    from perdure.engine.runs.live_run import LiveRun
    from perdure.kernel.onward import Decided
    from perdure.kernel.run import NodeState, Run

#: Other runs that are named; of more it is only said that there are more.
MENTIONED: Final = 3


class Screen(Protocol):
    """Where progress is shown, on stderr. A context manager."""

    def changed(self, change: Change) -> None:
        """A node changed."""

    def note(self, text: str) -> None:
        """Something to say beside the nodes."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...


class Progress:
    """An engine's Observer for the run `workflow/id`. `here`: this process holds the run.
    `parting`: what is said of a run that starts here."""

    def __init__(
        self, workflow: str, id: str, book: NodeBook, screen: Screen, *, parting: str = ""
    ) -> None:
        self.workflow = workflow
        self.id = id
        self.book = book
        self.screen = screen
        self.here = False
        self._parting = parting
        #: What is dispatched from now on waits for another process.
        self.stopping = False
        self._others = 0
        #: The last journal row that is in the book.
        self._seq = 0

    @property
    def seen(self) -> int:
        """The last journal row that is told: what follows are the rows after it."""
        return self._seq

    def raised(self, workflow: str, id: str, node: str, attempt: int, place: str) -> bool:
        """An attempt raised at this place in the code, and its failure will be recorded; whether
        it is this run's, whose failure is told here anyway."""
        if (workflow, id) != (self.workflow, self.id):
            return False
        self.book.places[node, attempt] = place
        return True

    def entered(self, live: LiveRun, run: Run) -> None:
        """A run came into memory: ours begins or goes on, others are mentioned."""
        name = f"{live.definition.name}/{live.run_id}"
        if name != f"{self.workflow}/{self.id}":
            self._other(name)
            return
        woken, self.here = self.here, True
        if live.epoch == 0:  # born here
            self.screen.note(f"{name} starts, version {live.definition.version}")
            if self._parting:
                self.screen.note(self._parting)
            return
        self._seq = max(self._seq, live.seq)
        now = datetime.now(UTC)
        for node, state in run.nodes.items():
            view = self.book.nodes.get(node)
            if view is None or view.status != state.status:
                self.book.nodes[node] = _view(node, state, now)
        self.book.code = run.begun
        self.book.restarted(now)
        if not woken:  # else it only waited, in nobody's memory
            self._stand(name, now)

    def _stand(self, name: str, now: datetime) -> None:
        self.screen.note(f"{name} {self._standing()}")
        for view in self.book.having("waiting"):
            self.screen.changed(Change(now, view.node, self.book.waiting(view)))
        for view in self.book.having("pending"):
            if view.child is not None:
                self.screen.changed(Change(now, view.node, f"waits for run {view.child}"))

    def _other(self, name: str) -> None:
        if any(view.child == name for view in self.book.nodes.values()):
            return  # told where it was asked for
        self._others += 1
        if self._others <= MENTIONED:
            self.screen.note(f"also goes on with {name}, left by an earlier process")
        elif self._others == MENTIONED + 1:
            self.screen.note("also goes on with further runs")

    def _standing(self) -> str:
        done = [v for v in self.book.nodes.values() if v.status not in OPEN]
        pending = [
            v.node if v.attempt <= 1 else f"{v.node} (attempt {v.attempt})"
            for v in self.book.having("pending")
        ]
        pending += [view.node for view in self.book.having("waiting")]
        if not done and not pending:
            return "begins: nothing was recorded before"
        if not done and any(view.child for view in self.book.having("pending")):
            return f"goes on from {', '.join(pending)}"
        if not done:
            return f"begins at {', '.join(pending)}: nothing had completed before"
        if any(view.node.endswith(UNDO) for view in self.book.having("pending")):
            return f"goes on undoing what was done, from {', '.join(pending)}"
        what = "call" if self.book.code else "node"
        nodes = f"1 {what} is" if len(done) == 1 else f"{len(done)} {what}s are"
        return f"goes on from {', '.join(pending)}: {nodes} recorded, and not done again"

    def recorded(self, live: LiveRun, transition: Decided) -> None:
        """A transition became durable."""
        if live.run_id == self.id and live.definition.name == self.workflow:
            self._seq = max(self._seq, live.seq)
            self._take(told_of(transition, live.seq, ""))

    def left(self) -> None:
        """Another process took the run over; what it records is followed."""
        self.here = False
        self.screen.note("another process goes on with it; following what it records")

    def joined(self, history: list[Mapping[str, Any]]) -> None:
        """How a run stands that others work on; what they record from now on is followed."""
        for record in history:
            self.book.take(record)
        self._seen(history)
        if self.book.having(*OPEN):
            self._stand(f"{self.workflow}/{self.id}", datetime.now(UTC))

    def recalled(self, history: Iterable[Mapping[str, Any]]) -> None:
        """What the state of a run that goes on here does not tell: since when nodes wait, of what
        they failed, and why the run is undone."""
        before = NodeBook()
        for record in history:
            before.take(record)
        self.book.undoing = before.undoing or self.book.undoing
        for node, view in self.book.nodes.items():
            known = before.nodes.get(node)
            if known is None or known.status != view.status:
                continue
            if view.status == "waiting":
                view.since = known.since
            if view.failure is None:
                view.failure, view.errors = known.failure, known.errors

    def follow(self, history: list[Mapping[str, Any]]) -> None:
        """What others recorded so far, or since what was `seen`."""
        self._take(record for record in history if record["seq"] > self._seq)
        self._seen(history)

    def complete(self, history: list[Mapping[str, Any]]) -> None:
        """Everything that others recorded; told only where it was followed before."""
        if self._seq:
            self.follow(history)
        else:
            for record in history:
                self.book.take(record)

    def _seen(self, history: list[Mapping[str, Any]]) -> None:
        self._seq = max([self._seq, *(record["seq"] for record in history)])

    def _take(self, records: Iterable[Mapping[str, Any]]) -> None:
        for record in records:
            changes = self.book.take(record)
            if not (self.stopping and record["do"] == "DispatchTask"):
                for change in changes:
                    self.screen.changed(change)


def _view(node: str, state: NodeState, now: datetime) -> NodeView:
    view = NodeView(node, state.status, state.attempt + 1, signal=state.awaited_signal)
    if state.child is not None and not state.not_before:
        view.attempt, view.child = 0, f"{state.child.definition}/{state.child.id}"
    if state.status == "waiting":
        view.attempt, view.since = 0, now
        view.wake_at = None if state.wake_at is None else moment(state.wake_at)
    return view
