"""Runs that wait for other runs, in memory: who waits for whom, and what they are told.

Everything happens while a row is being accepted, so nobody sees a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perdure.stores.answers import Posted
from perdure.stores.children import (
    Asked,
    cancel_message,
    finished_id,
    finished_message,
    refused_message,
    started_id,
    started_message,
    was_created,
)
from perdure.stores.memory.run import MemoryRun
from perdure.stores.rows import ChildCancel, ChildStart, Finish, JournalRow, Message

Name = tuple[str, str]


class Children:
    """`post`: puts a message into a mailbox; `start`: inserts a run."""

    __slots__ = ("_ids", "_names", "_post", "_runs", "_start", "_tasks", "_waiting", "sent")

    def __init__(
        self,
        runs: Mapping[bytes, MemoryRun],
        ids: Mapping[Name, bytes],
        post: Callable[[Message], Posted],
        start: Callable[[ChildStart], None],
    ) -> None:
        self._runs = runs
        self._ids = ids
        self._post = post
        self._start = start
        #: By the run they wait for: the calls, by their tasks.
        self._waiting: dict[Name, dict[str, Asked]] = {}
        #: Task → the run it waits for.
        self._names: dict[str, Name] = {}
        #: Run → its tasks that wait.
        self._tasks: dict[bytes, set[str]] = {}
        #: What was posted since somebody looked.
        self.sent: list[tuple[Message, Posted]] = []

    def after(self, row: JournalRow) -> None:
        """A row was accepted: what it carries is carried out, and its run's end is told."""
        for out in row.outgoing:
            if isinstance(out, ChildStart):
                self._ask(row.run, out)
            elif isinstance(out, ChildCancel):
                self._cancel(out)
            else:
                self._send(out)
        if self._waiting and isinstance(row.change, Finish):
            self.tell(self._runs[row.run])

    def tell(self, run: MemoryRun) -> None:
        """Whoever waits for this run, which has ended, is told how."""
        for task in list(self._waiting.get(_name(run), ())):
            self._tell(self._leave(task), run)

    def forget(self, key: bytes) -> None:
        """The run is forgotten: it waits for nobody."""
        for task in list(self._tasks.get(key, ())):
            self._leave(task)

    def _send(self, message: Message) -> None:
        posted = self._post(message)
        if posted.outcome == "posted":
            self.sent.append((message, posted))

    def _ask(self, parent: bytes, start: ChildStart) -> None:
        asker = self._runs[parent]
        name = next((name for name in start.names if name in self._ids), start.name)
        if finished_id(start.task) in asker.ids or start.task in self._names:
            return
        told = asker.ids.get(started_id(start.task))
        if told is None:
            created = name not in self._ids
            if created and start.run is None:
                self._send(refused_message(_name(asker), start))
                return
            if created:
                self._start(start)
            self._send(started_message(_name(asker), start, created))
        else:
            created = was_created(asker.mailbox[told - 1].body)
        if not start.waits:
            return
        asked = Asked(parent, start.task, start.node, created)
        key = self._ids.get(name)
        if key is not None and self._runs[key].status != "running":
            self._tell(asked, self._runs[key])
        else:
            self._waiting.setdefault(name, {})[start.task] = asked
            self._names[start.task] = name
            self._tasks.setdefault(parent, set()).add(start.task)

    def _cancel(self, cancel: ChildCancel) -> None:
        if cancel.task not in self._names:
            return
        name = self._names[cancel.task]
        if self._leave(cancel.task).created:
            self._send(cancel_message(name, cancel.task, cancel.reason))

    def _leave(self, task: str) -> Asked:
        name = self._names.pop(task)
        waiting = self._waiting[name]
        asked = waiting.pop(task)
        if not waiting:
            del self._waiting[name]
        tasks = self._tasks[asked.parent]
        tasks.remove(task)
        if not tasks:
            del self._tasks[asked.parent]
        return asked

    def _tell(self, asked: Asked, run: MemoryRun) -> None:
        asker = self._runs.get(asked.parent)
        if asker is None:
            return
        end, apart = run.finish, run.output_at
        assert end is not None, "it has ended"
        output = end.output if apart is None else run.payload(*apart)
        self._send(
            finished_message(
                _name(asker), asked.task, asked.node, run.status, output, end.failure
            )
        )  # fmt: skip


def _name(run: MemoryRun) -> Name:
    return run.new.definition, run.new.id
