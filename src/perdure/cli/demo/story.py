"""How the demo tells its story: plain words and tables, for any width, with or without a
terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

from perdure.cli.demo.account import Account, Check
from perdure.cli.nodes import NodeBook, NodeView
from perdure.cli.output import shortened

_KINDS: Final = {
    "HTTP": "a request to the shop",
    "TASK": "a Python function",
    "SWITCH": "a decision",
    "FORK": "a fork",
    "JOIN": "a join",
}
_PURPOSES: Final = {
    "fetch": "what was ordered?",
    "check": "is it over 500? then somebody reviews it first",
    "review": "somebody reviews it",
    "prepare": "begin the next two at the same time",
    "reserve": "take the goods off the shelf",
    "charge": "charge the customer's card",
    "ready": "wait until both are done",
    "ship": "pack it and print the label",
    "notify": "tell the customer",
}


class Teller:
    """Prints the story; `err`: on stderr, when stdout is for JSON."""

    def __init__(self, *, err: bool) -> None:
        self._err = err

    def say(self, text: str = "") -> None:
        """A line of the story."""
        click.echo(text, err=self._err)

    def chapter(self, number: int, title: str) -> None:
        """A heading."""
        self.say()
        self.say(click.style(f"{number}. {title}", bold=True))

    def heard(self, line: str) -> None:
        """A line of a worker."""
        self.say(click.style("   | ", dim=True) + line)

    def killed(self, seconds: float, seed: int) -> None:
        """The kill."""
        text = f"KILLED (kill -9), {seconds:.2f} s after it began"
        self.say("   | " + click.style(text, fg="red", bold=True))
        self.say(f"     The moment was drawn at random; --seed {seed} draws it again.")

    def plan(self, types: Mapping[str, str]) -> None:
        """The steps of the order."""
        rows = [(node, _PURPOSES.get(node, ""), _KINDS[type]) for node, type in types.items()]
        self.columns(rows)

    def recorded(self, types: Mapping[str, str], book: NodeBook) -> None:
        """What was on disk at the kill."""
        self.columns([(node, *_found(book.nodes.get(node))) for node in types])

    def account(self, found: Sequence[Account]) -> None:
        """Before and after, side by side."""
        rows = [("step", "before the kill", "after it")]
        rows += [(a.node, a.before, a.after) for a in found]
        self.columns(rows, ["dim", *(_colour(a) for a in found)])

    def columns(self, rows: Sequence[Sequence[str]], styles: Sequence[str] = ()) -> None:
        """Rows as columns, indented; a style for each row: a colour, "dim" or ""."""
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for number, row in enumerate(rows):
            text = "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
            style = styles[number] if styles else ""
            self.say("   " + _styled(text, style))

    def check(self, check: Check) -> None:
        """A promise, held or broken."""
        sign = click.style("ok", fg="green") if check.held else click.style("BROKEN", fg="red")
        self.say(f"   {sign}  {check.promise}")


def _colour(account: Account) -> str:
    return {"recorded": "green", "under way": "yellow"}.get(account.standing, "")


def _styled(text: str, style: str) -> str:
    return click.style(text, dim=True) if style == "dim" else click.style(text, fg=style or None)


def _found(view: NodeView | None) -> tuple[str, str]:
    if view is None:
        return "not reached", ""
    if view.status == "pending":
        return "begun", "no outcome recorded"
    if view.branches is not None:
        return "decided", f"go to {', '.join(view.branches)}"
    if view.status == "skipped" or not view.output:
        return {"skipped": "not needed", "completed": "done"}.get(view.status, view.status), ""
    output = view.output.get("body", view.output) if isinstance(view.output, dict) else view.output
    return "done", shortened(output, 70)


def twice(found: Sequence[Account], keys: Mapping[str, set[str]]) -> list[str]:
    """Why what ran again ran again, in sentences."""
    again = [a for a in found if a.again]
    under_way = [a.node for a in found if a.standing == "under way"]
    lines = [f"Ran once:  {_and([a.node for a in found if a.asked == 1])}."]
    if not again:
        if not under_way:
            return [*lines, "Ran twice: nothing. The kill came between two steps."]
        begun = f"{_and(under_way).capitalize()} had not really begun."
        return [*lines, f"Ran twice: nothing. {begun}"]
    were = "it was" if len(again) == 1 else "they were"
    lines += [
        f"Ran twice: {_and([a.node for a in again])}. At the kill {were} under way, and nobody can",
        "know how far a dead process got. What was recorded was not done again.",
    ]
    if "charge" in (a.node for a in again) and len(keys["charge"]) == 1:
        lines += [
            "The shop was asked for the payment twice, both times with the same idempotency key:",
            f"  {next(iter(keys['charge']))}",
            "so it knew the second request for a repeat, and charged nothing again.",
        ]
    return lines


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
