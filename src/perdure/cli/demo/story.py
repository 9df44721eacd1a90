"""How the demo tells its story: what is about to happen, what happens, and what came of it."""

from __future__ import annotations

import re
import select
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from perdure.cli.demo.account import Account, Check, Kill
from perdure.cli.demo.page import Page, Span, Style
from perdure.cli.node_view import Change
from perdure.cli.output import took

if TYPE_CHECKING:
    from perdure.cli.demo.reversal import Reversal

PURPOSES: Final = {
    "fetch": "ask the shop what was ordered",
    "check": "over 500? then somebody has to approve it",
    "approval": "wait for that person, three days if need be",
    "prepare": "begin the next two at the same time",
    "reserve": "take the goods off the shelf",
    "charge": "charge the customer's card",
    "ready": "wait until both are done",
    "courier": "wait until the courier comes",
    "ship": "pack it and print the label",
    "notify": "tell the customer",
}
#: How the engine tells of an answer that was not expected.
_ANSWER: Final = re.compile(r"http-status: \w+ \S+: unexpected status (\d+)[^;]*")
#: Seconds between two acts, for somebody who reads along.
BREATH: Final = 1.5
#: Seconds that somebody at a terminal has to press Enter.
ENTER: Final = 20
ACTS: Final = 5


class Teller:
    """`reader`: whether a person is at the terminal and reads along."""

    def __init__(self, page: Page, *, reader: bool) -> None:
        self._page = page
        self.reader = reader
        self._began = time.time()

    def act(self, number: int, title: str, text: str) -> None:
        """A heading, and in one line what is about to happen."""
        self.breathe()
        self._page.line()
        self._page.line((f"{number}/{ACTS}  {title}", "bold"))
        self._page.line((text, ""), indent=5)
        self._page.line()
        self.breathe()

    def close(self, title: str) -> None:
        """The heading of the end."""
        self.breathe()
        self._page.line()
        self._page.line((title, "bold"))
        self._page.line()

    def say(self, text: str = "", style: Style = "", indent: int = 0) -> None:
        """A line of the story."""
        self._page.line((text, style), indent=indent, hang=2 if indent else 0)

    def try_it(self, command: str) -> None:
        """A command to copy."""
        self._page.whole(f"     {command}")

    def typed(self, command: str, said: str = "") -> None:
        """A command, and what it printed."""
        self._page.line(("$ ", "dim"), (command, "bold"), indent=5, hang=4)
        for line in said.splitlines():
            self._page.line((line, ""), indent=7, hang=4)

    def event(self, change: Change, by: str) -> None:
        """Something that was recorded just now."""
        text, style = change.text, _style_of(change.text)
        who = f"{by:<5}" if by else "     "
        spans: list[Span] = [(self._at(change.time), "dim"), ("  ", ""), (who, "cyan"), ("  ", ""),
                 (f"{change.node:<11}", ""), (f" {_plain(text)}", style)]  # fmt: skip
        self._page.line(*spans, hang=28)

    def killed(self, worker: str, pid: int, when: str) -> None:
        """A kill."""
        now = datetime.now().astimezone()
        text = f"KILLED: worker {worker} (kill -9 {pid}), {when}"
        self._page.line((self._at(now), "dim"), ("  ", ""), (text, "red"), hang=9)

    def taken(self, kill: Kill, what: str = "order") -> None:
        """What became of what the dead one held."""
        now = datetime.now().astimezone()
        if kill.after is None:
            text = f"The {what} had just been finished: there was nothing left to take over."
        else:
            text = f"worker {kill.taker} has taken the {what} over, {took(kill.after)} after that"
        self._page.line((self._at(now), "dim"), ("  ", ""), (text, "green"), hang=9)

    def plan(self, types: Mapping[str, str]) -> None:
        """The steps of the order."""
        rows = [(node, PURPOSES.get(node, "")) for node in types]
        self._page.table(("step", "what it does"), rows, [""] * len(rows))

    def account(self, found: Sequence[Account]) -> None:
        """The journal and the others, side by side."""
        shown = [a for a in found if a.type not in ("FORK", "JOIN")]
        head = ("step", "recorded by", "the journal says", "the shop and the warehouse say")
        rows = [(a.node, a.by, a.journal, a.others) for a in shown]
        self._page.table(head, rows, [_colour(a) for a in shown])

    def reversal(self, steps: Sequence[Reversal]) -> None:
        """The trip: who undid what, beside what the agencies say."""
        head = ("step", "undone by", "the journal says", "the agencies say")
        rows = [(s.step, s.by, s.status, s.others) for s in steps]
        colours: list[Style] = ["yellow" if s.asked > 1 else "" for s in steps]
        self._page.table(head, rows, colours)

    def check(self, check: Check) -> None:
        """A promise, held or broken."""
        sign: tuple[str, Style] = ("ok      ", "green") if check.held else ("BROKEN  ", "red")
        self._page.line(sign, (check.promise, ""), indent=3, hang=8)

    def breathe(self) -> None:
        """A moment for somebody who reads along."""
        if self.reader:
            time.sleep(BREATH)

    def enter(self, text: str) -> None:
        """Wait until Enter is pressed, but not for long; not at all where nobody is there."""
        if not self.reader or not sys.stdin.isatty():
            return
        self._page.line((f"{text} (press Enter, or wait {ENTER} s)", "bold"), indent=5)
        if select.select([sys.stdin], [], [], ENTER)[0]:
            sys.stdin.readline()

    def _at(self, time: datetime) -> str:
        return f"{max(0.0, time.timestamp() - self._began):5.1f} s"


def _plain(text: str) -> str:
    """What a worker would say, without what a newcomer does not need to know."""
    return _ANSWER.sub(r"the shop answered \1", text)


def _style_of(text: str) -> Style:
    if "failed" in text:
        return "yellow"
    if text.startswith(("completed", "chose", "got signal")):
        return "green"
    return ""


def _colour(account: Account) -> Style:
    if not (account.fair and account.once and account.same):
        return "red"
    return "yellow" if account.view is not None and account.view.lost else ""
