"""Whether a value is what a signal of a workflow in Python takes, where its code is at hand.

A document says nothing of the values of its signals, so there is nothing to hold them against. A
workflow keeps the first value of a signal for good: one that does not fit is better not sent.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from perdure.cli.app import find_apps, load_apps

if TYPE_CHECKING:
    from perdure.client.run import Run
    from perdure.flow.registry import Registry
    from perdure.flow.signal import Mailbox


class Mailboxes:
    """Those of the workflows that apps hold: those `given`, else the project's, which are imported
    when a workflow in Python is told something. Raises Trouble and DefinitionError for those
    given."""

    def __init__(self, given: Sequence[str]) -> None:
        self._known: Registry | None = load_apps(given) if given else None
        #: Whether a value was held against its type.
        self.checked = False
        #: By workflow, why a value for it was held against nothing.
        self.unchecked: dict[str, str] = {}

    async def check(self, run: Run[Any], name: str, value: Any) -> None:
        """Raise InvalidRequest for a value that the run's code could not read."""
        from msgspec import Raw

        from perdure.model.errors import NotFound

        try:
            row = await run._row()
            stored = await run._reach.store.definition(row.hash)
        except NotFound:
            return  # that is for who sends to say
        if stored.kind != "workflow":
            return
        found = self._found(row.definition, name)
        if isinstance(found, str):
            self.unchecked[row.definition] = found
            return
        found.read(Raw(run._reach.codec.encode(value)))
        self.checked = True

    def _found(self, workflow: str, name: str) -> Mailbox[Any] | str:
        """The mailbox of this name; or why there is none."""
        from perdure.flow.workflow import Workflow

        try:
            definition = self._registry().definition(workflow)
        except Exception as error:
            return f"the project's app cannot be used: {error}"
        if not isinstance(definition, Workflow):
            return f"--app FILE.py says where the code of {workflow} is"
        named = [box for box in _mailboxes(definition) if _is_named(box, name)]
        if not named:
            return f"the code of {workflow} names no signal {name}"
        kinds = [getattr(box.read, "kind", Any) for box in named]
        if any(kind != kinds[0] for kind in kinds):
            return f"the code of {workflow} has several signals {name}"
        return named[0]

    def _registry(self) -> Registry:
        if self._known is None:
            self._known = load_apps(find_apps(()))
        return self._known


def _mailboxes(workflow: Any) -> Iterator[Mailbox[Any]]:
    """What the function names of its module's top level, and else stands there."""
    from perdure.flow.legible import globals_of
    from perdure.flow.signal import Mailbox

    home = getattr(sys.modules.get(workflow.fn.__module__), "__dict__", {})
    for thing in (*globals_of(workflow.fn), *home.values()):
        if isinstance(thing, Mailbox):
            yield thing


def _is_named(box: Mailbox[Any], name: str) -> bool:
    """Whether messages of this name are for the mailbox, or for one of it that has a key."""
    return name == box.name or (name.startswith(f"{box.base}[") and name.endswith("]"))
