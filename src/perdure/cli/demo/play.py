"""The acts of the demo: an order, three kills, and what was written down meanwhile; then a trip
that is undone."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from perdure.cli.demo.account import Kill, accounts, checks, writers_of
from perdure.cli.demo.journal import Journal
from perdure.cli.demo.logs import read_lines
from perdure.cli.demo.rollback import RollbackAct
from perdure.cli.demo.shop import PACE
from perdure.cli.demo.stage import Crew, Said, Shop, typed, worker_words
from perdure.cli.options import RunName

if TYPE_CHECKING:
    from perdure.cli.demo.account import Account, Check
    from perdure.cli.demo.reversal import Rollback
    from perdure.cli.demo.story import Teller

ORDER: Final = RunName("order", "1002")
NAMES: Final = ("one", "two", "three", "four", "five")
#: Seconds from the moment that everything is ready to the order's end, at least.
REST: Final = 7.0


class Outcome(msgspec.Struct, frozen=True):
    """What came of it all."""

    kills: Sequence[Kill]
    found: Sequence[Account]
    checks: Sequence[Check]
    output: Any
    rollback: Rollback

    @property
    def held(self) -> bool:
        """Whether everything that was promised held."""
        return all(check.held for check in (*self.checks, *self.rollback.checks))


class Play:
    """One demo, in a folder with order.json, steps.py and trip.py in it. `seed`: draws every
    moment."""

    def __init__(
        self, tell: Teller, folder: Path, store: str, seed: int, types: Mapping[str, str]
    ) -> None:
        self._tell = tell
        self._folder = folder
        self._store = store
        self._types = types
        self._seed = seed
        self._random = random.Random(seed)  # noqa: S311  no secret
        self._kills: list[Kill] = []

    def run(self) -> Outcome:
        """All acts. Every process that they start has ended when this returns or raises."""
        with ExitStack() as stack:
            shop = stack.enter_context(Shop(self._folder, self._seed))
            journal = stack.enter_context(Journal(self._store, ORDER, self._tell.event))
            crew = Crew(self._folder, self._store, stack)
            self._arrives(crew, journal, shop.url)
            self._waits(crew, journal)
            self._pays(crew, journal)
            output = self._ships(crew, journal)
        rollback = RollbackAct(self._tell, self._folder, self._store, self._seed).run(5)
        return self._accounted(journal, output, rollback)

    def _arrives(self, crew: Crew, journal: Journal, url: str) -> None:
        self._tell.act(
            1, "An order comes in",
            f"Two workers begin. The shop, at {url}, is busy today: at times it answers 503.",
        )  # fmt: skip
        first = [crew.hire(name) for name in NAMES[:2]]
        for worker in first:
            self._tell.typed(typed(worker_words(worker.name)) + " &")
        for worker in first:
            worker.ready()
        input = json.dumps({"order": ORDER.id, "shop": url})
        self._command("start", "order.json", "--id", ORDER.id, "--input", input)
        self._tell.say()
        journal.until(lambda: _waits_at(journal, "approval"), "the wait for approval")

    def _waits(self, crew: Crew, journal: Journal) -> None:
        self._tell.act(
            2, "It waits for a person, and its worker is killed",
            "Who has the order now, and what does it wait for? Then that worker dies.",
        )  # fmt: skip
        self._command("why", str(ORDER))
        self._tell.say()
        self._tell.breathe()
        journal.wait(self._random.uniform(0.2, 2.0))
        self._kill(crew, journal, "while the order waits")

    def _pays(self, crew: Crew, journal: Journal) -> None:
        self._tell.act(
            3, "It is approved, and its worker is killed in the middle of the payment",
            "The worst of moments: the money is taken, and nobody is there to hear the answer.",
        )  # fmt: skip
        self._tell.enter("Approve the order?")
        words = ["signal", str(ORDER), "approved", json.dumps({"by": "you"})]
        self._tell.typed(typed(words))
        self._tell.say()
        with Said(words, self._folder, self._store) as signal:
            journal.until(self._asked_to_pay, "the payment")
            journal.wait(self._random.uniform(0.05, 0.75) * PACE["payments"])
            kill = self._kill(crew, journal, "while the shop charges the card")
            signal.text()
        text = "The payment had just been recorded: it is not asked for again."
        if "charge" in kill.under_way:
            text = "What was under way is begun again, with the same key: the shop can tell."
        self._tell.say(text, indent=9)
        journal.until(lambda: "courier" in journal.book.nodes, "the courier")

    def _ships(self, crew: Crew, journal: Journal) -> Any:
        self._tell.act(
            4, "It is shipped, and once more a worker is killed at any moment",
            "While it waits for the courier, packs, or tells the customer: chance decides.",
        )  # fmt: skip
        since = journal.book.nodes["courier"].since
        began = time.time() if since is None else since.timestamp()
        left = max(0.0, began + REST - time.time())
        journal.wait(self._random.uniform(0.02, 0.92) * left)
        self._kill(crew, journal, "at a random moment")
        journal.until(lambda: False, "the end of the order")
        self._tell.say()
        journal.look()
        return json.loads(self._command("result", str(ORDER), "--wait"))

    def _kill(self, crew: Crew, journal: Journal, when: str) -> Kill:
        """Kill who has the order, see who takes it over, and start one more worker."""
        journal.look()
        holder, known = journal.holder, len(journal.records)
        worker = crew.kill(holder)
        killed = time.time()
        self._tell.killed(worker.name, worker.pid, when)
        journal.look()
        kill = Kill(worker.name, worker.pid, journal.book)
        if worker.name == holder and not journal.ended:
            journal.until(lambda: journal.claim_after(known) is not None, "a takeover")
        claim = journal.claim_after(known)
        if claim is not None:
            taker, at = claim
            kill = msgspec.structs.replace(kill, taker=taker, after=at.timestamp() - killed)
        self._tell.taken(kill)
        self._kills.append(kill)
        crew.hire(NAMES[len(self._kills) + 1])
        return kill

    def _asked_to_pay(self) -> bool:
        return any(
            line.get("asked") == "charge" and not line["busy"]
            for line in read_lines(self._folder / "shop.log")
        )

    def _command(self, *words: str) -> str:
        with Said(words, self._folder, self._store) as said:
            text = said.text()
        self._tell.typed(typed(words), text)
        return text

    def _accounted(self, journal: Journal, output: Any, rollback: Rollback) -> Outcome:
        lines = read_lines(self._folder / "shop.log") + read_lines(self._folder / "warehouse.log")
        now = journal.book
        writers = writers_of(journal.records, journal.names)
        found = accounts(self._types, now, writers, self._kills, lines)
        charged = [line["amount"] for line in lines if line.get("did") == "charge"]
        fetched = now.nodes["fetch"].output or {"body": {"total": 0.0}}
        held = checks(found, self._kills, journal.status, charged, fetched["body"]["total"])
        return Outcome(self._kills, found, held, output, rollback)


def _waits_at(journal: Journal, node: str) -> bool:
    view = journal.book.nodes.get(node)
    return view is not None and view.status != "pending"
