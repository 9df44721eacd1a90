"""`--where`: which runs are meant, in one small grammar shared by `list` and the bulk actions.

A condition is KEY=VALUE. The same key again, or a comma in the value of `status`, widens; other
keys narrow. What the store can look up it does; the rest is tried on what it finds.

    status=failed,canceled  workflow=order  version=2  id=2026-*  older=2d  newer=1h
    metadata.customer=ann
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from perdure.cli.options import F, TextType

if TYPE_CHECKING:
    from perdure.client.client import Client
    from perdure.client.run_info import RunInfo

ENDED: Final = ("completed", "failed", "canceled")
#: `stalled` are those of the running ones that cannot go on.
STATUSES: Final = ("running", *ENDED, "stalled")
KEYS: Final = ("status", "workflow", "version", "id", "older", "newer", "metadata.NAME")


class Condition(NamedTuple):
    """One KEY=VALUE. `since`: of older and newer, the moment it counts from."""

    key: str
    value: str
    since: datetime | None = None


class ConditionType(TextType):
    """KEY=VALUE, checked as far as it can be without a store."""

    name = "condition"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The Condition; complains about what is none."""
        key, equals, text = str(value).partition("=")
        if not equals or not text:
            self.fail(f"{value!r}: write KEY=VALUE, such as status=failed", param, ctx)
        if key.startswith("metadata.") and key != "metadata.":
            return Condition(key, text)
        if key not in KEYS[:-1]:
            self.fail(f"{key!r} is not known: there are {', '.join(KEYS)}", param, ctx)
        if key == "status":
            wrong = [name for name in text.split(",") if name not in STATUSES]
            if wrong:
                known = ", ".join(STATUSES)
                self.fail(f"status {wrong[0]!r} is not known: there are {known}", param, ctx)
        if key in {"older", "newer"}:
            return Condition(key, text, self._before(text, param, ctx))
        return Condition(key, text)

    def _before(
        self, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        from perdure.cli.options import DurationType

        seconds = DurationType().convert(text, param, ctx)
        try:
            return datetime.now(UTC) - timedelta(seconds=seconds)
        except OverflowError:
            self.fail(f"{text!r} ago is before all calendars", param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Keys, and statuses."""
        from click.shell_completion import CompletionItem

        keys = [f"{key}=" for key in KEYS[:-1]] + ["metadata."]
        offered = [*keys, *(f"status={status}" for status in STATUSES)]
        return [CompletionItem(text) for text in offered if text.startswith(incomplete)]


def where_option(help: str = "Only runs of which this holds.") -> Callable[[F], F]:
    """`--where KEY=VALUE`, any number of times."""

    def add(command: F) -> F:
        return click.option(
            "--where", multiple=True, type=ConditionType(), metavar="KEY=VALUE",
            help=f"{help} Keys: {', '.join(KEYS)}. May be given again.",
        )(command)  # fmt: skip

    return add


class Where:
    """Conditions together. `default`: the statuses that are meant when none is said."""

    def __init__(self, conditions: Sequence[Condition], default: Sequence[str] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        for one in conditions:
            parts = one.value.split(",") if one.key == "status" else [one.value]
            self._values.setdefault(one.key, []).extend(parts)
        self.statuses = self._values.get("status") or list(default)
        older = [c.since for c in conditions if c.key == "older" and c.since is not None]
        newer = [c.since for c in conditions if c.key == "newer" and c.since is not None]
        # The same key again widens: older than either.
        self._until = max(older, default=None)
        self._after = min(newer, default=None)

    async def find(self, client: Client) -> AsyncIterator[RunInfo]:
        """The runs that are meant, newest first."""
        workflows = self._values.get("workflow", [])
        metadata = {k[9:]: v for k, v in self._values.items() if k.startswith("metadata.")}
        stored: Any = dict.fromkeys("running" if s == "stalled" else s for s in self.statuses)
        only = workflows[0] if len(set(workflows)) == 1 else None
        async for info in client.runs(
            workflow=only, status=tuple(stored), created_after=self._after
        ):
            if self._meant(info) and all(info.metadata.get(k) in v for k, v in metadata.items()):
                yield info

    def _meant(self, info: RunInfo) -> bool:
        return (
            self._stands(info)
            and (self._until is None or info.created < self._until)
            and self._one_of("workflow", info.workflow)
            and self._one_of("version", info.version)
            and self._one_of("id", info.id)
        )

    def _stands(self, info: RunInfo) -> bool:
        if not self.statuses or info.status in self.statuses:
            return True
        return "stalled" in self.statuses and info.stalled is not None

    def _one_of(self, key: str, text: str) -> bool:
        wanted = self._values.get(key)
        if wanted is None:
            return True
        if key == "id":
            return any(fnmatchcase(text, pattern) for pattern in wanted)
        return text in wanted
