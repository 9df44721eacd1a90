"""Rows that ask of other runs, and what the runs that wrote them are told, for cases about both."""

from __future__ import annotations

from typing import Any

import msgspec

from perdure.conformance.rows import BORN, definition, key, new, row
from perdure.stores.port import Store
from perdure.stores.rows import ChildStart, JournalRow


def asked(task: str, n: int, *, waits: bool = True, **more: Any) -> ChildStart:
    """A call that asks for run n."""
    run = new(n, ready_at=BORN, **more)
    return ChildStart(
        task, f"node-{task}", (run.definition, run.id), run, definition(), None, waits
    )


def asking(n: int, seq: int, *outgoing: Any, **more: Any) -> JournalRow:
    """A row of run n that asks something of others."""
    return row(n, seq, outgoing=outgoing, **more)


async def told(store: Store, n: int) -> list[tuple[str, dict[str, Any]]]:
    """What run n was told of other runs, in order."""
    return [
        (mail.kind, msgspec.json.decode(mail.body or b"null"))
        for mail in await store.mail(key(n), 0)
        if mail.kind.startswith("child")
    ]


def found(task: str, made: int = 0) -> tuple[str, dict[str, Any]]:
    """Told of a run that is there; `made`: of run n, which was made for the call."""
    said = {"task": task, "node": f"node-{task}", "created": made > 0, "typed": False}
    return "child-started", {**said, "key": key(made).hex() if made else ""}


def ended(
    task: str, status: str = "completed", output: Any = None, failure: Any = None
) -> tuple[str, dict[str, Any]]:
    """Told of a run that has ended."""
    said = {"task": task, "node": f"node-{task}", "status": status}
    return "child-finished", {**said, "output": output, "failure": failure}
