"""A small model of the fence, takeover, unknown commits, mail and parking, to be searched whole.

One run, one store, two workers and somebody who posts. A worker that was declared dead goes on as
a zombie; answers get lost, and what was sent may arrive when its sender has given it up. `Rules`
are those of the stores; each can be broken, and the search must then find what it protects from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

WORKERS = ("A", "B")


class Rules(NamedTuple):
    """As the stores and the engine keep them."""

    takeover_writes_a_row: bool = True
    parking_looks_at_mail: bool = True
    parking_looks_at_the_epoch: bool = True
    posting_wakes: bool = True
    posting_knows_ids: bool = True
    the_same_bytes_are_sent_again: bool = True
    an_own_row_is_accepted: bool = True
    reconciling: bool = True
    only_what_is_durable_is_read: bool = True
    rows_under_way: int = 1


class Row(NamedTuple):
    """A journal row. `on`: the row it was decided on; `busy`: the run has something to do after
    it; `body`: differs when other bytes go under one name (writer and number of the try)."""

    name: str
    on: str
    read: int
    busy: bool
    body: int = 0


class Holder(NamedTuple):
    """What a worker that holds the run believes. `durable`: the rows known to be durable."""

    epoch: int
    durable: tuple[Row, ...]
    flight: tuple[Row, ...] = ()

    @property
    def last(self) -> Row:
        return self.flight[-1] if self.flight else self.durable[-1]


class Late(NamedTuple):
    """Something sent by a worker who waits for no answer any more: a row, or a park."""

    worker: str
    epoch: int
    read: int
    seq: int = 0
    row: Row | None = None


class Budget(NamedTuple):
    """How much may still happen, so that the search ends."""

    decisions: int = 2
    posts: int = 2
    deaths: int = 2
    losses: int = 1


class State(NamedTuple):
    """`letters`: ids of the messages in the mailbox, in order; `unsure`: one whose answer was
    lost; `due`: the run is due now (else never)."""

    journal: tuple[Row | None, ...]
    owner: str | None
    epoch: int
    due: bool
    letters: tuple[int, ...]
    unsure: int
    a: Holder | None
    b: Holder | None
    late: Late | None
    budget: Budget

    def holder(self, worker: str) -> Holder | None:
        return self.a if worker == "A" else self.b

    def holding(self, worker: str, holder: Holder | None) -> State:
        return self._replace(a=holder) if worker == "A" else self._replace(b=holder)

    def spending(self, **spent: int) -> State:
        left = {name: getattr(self.budget, name) - n for name, n in spent.items()}
        return self._replace(budget=self.budget._replace(**left))


FIRST = Row("A0", "", 0, busy=True)
BEGIN = State((FIRST,), "A", 0, False, (), 0, Holder(0, (FIRST,)), None, None, Budget())
Step = tuple[str, State]


def steps(rules: Rules, state: State) -> Iterator[Step]:
    """Everything that may happen next, in words and as the state it leads to."""
    yield from posting(rules, state)
    for worker in WORKERS:
        yield from deciding(rules, state, worker)
        yield from committing(rules, state, worker)
        yield from parking(rules, state, worker)
        yield from claiming(state, worker)
        yield from dying(rules, state, worker)
        yield from reconciling(rules, state, worker)
    if state.late is not None:
        yield f"what {state.late.worker} sent long ago arrives", arriving(rules, state)


def posting(rules: Rules, state: State) -> Iterator[Step]:
    """Mail is numbered, and wakes a run that has no owner."""
    if state.unsure:
        again = state._replace(unsure=0)
        if not rules.posting_knows_ids or state.unsure not in state.letters:
            again = posted(rules, again, state.unsure)
        yield f"message {state.unsure} is posted again", again
    if state.budget.posts:
        id, spent = len(state.letters) + 1, state.spending(posts=1)
        yield f"message {id} is posted", posted(rules, spent, id)
        if state.budget.losses and not state.unsure:
            lost = spent.spending(losses=1)._replace(unsure=id)
            yield f"message {id} is posted, the answer is lost", posted(rules, lost, id)


def posted(rules: Rules, state: State, id: int) -> State:
    wakes = rules.posting_wakes and state.owner is None
    return state._replace(letters=(*state.letters, id), due=state.due or wakes)


def deciding(rules: Rules, state: State, worker: str) -> Iterator[Step]:
    """A holder decides its next row, with or without the mail that is there."""
    holder = state.holder(worker)
    if holder is None or not state.budget.decisions or len(holder.flight) == rules.rows_under_way:
        return
    name = f"{worker}{state.budget.decisions}"
    spent = state.spending(decisions=1)
    for read in {holder.last.read, len(state.letters)}:
        for busy in (False, True):
            row = Row(name, holder.last.name, read, busy)
            said = f"{worker} decides {name} (read {read}{', busy' if busy else ''})"
            yield said, spent.holding(worker, holder._replace(flight=(*holder.flight, row)))


def committing(rules: Rules, state: State, worker: str) -> Iterator[Step]:
    """Rows under way reach the store in any order; what is not answered is sent again."""
    holder = state.holder(worker)
    for n, row in enumerate(() if holder is None else holder.flight):
        assert holder is not None
        seq = len(holder.durable) + n
        stored, verdict = written(rules, state, seq, row)
        yield f"{row.name} is {verdict}", answered(stored, worker, holder, n, verdict)
        if state.budget.losses:
            lost = stored.spending(losses=1)
            again = row
            if not rules.the_same_bytes_are_sent_again:
                again = row._replace(body=row.body + 1, busy=not row.busy)
            flight = (*holder.flight[:n], again, *holder.flight[n + 1 :])
            unknown = lost.holding(worker, holder._replace(flight=flight))
            yield f"{row.name} is {verdict}, the answer is lost", unknown
            if state.late is None:
                slow = state.spending(losses=1)._replace(
                    late=Late(worker, holder.epoch, 0, seq, row)
                )
                yield f"{row.name} is slow, {worker} sends it again", slow


def written(rules: Rules, state: State, seq: int, row: Row) -> tuple[State, str]:
    """The journal's key is the fence; an own row is told from another's by its name."""
    journal = state.journal
    found = journal[seq] if seq < len(journal) else None
    if found is None:
        journal += (None,) * (seq + 1 - len(journal))
        return state._replace(journal=(*journal[:seq], row, *journal[seq + 1 :])), "accepted"
    mine = found.name == row.name and rules.an_own_row_is_accepted
    return state, "mine" if mine else "refused"


def answered(state: State, worker: str, holder: Holder, n: int, verdict: str) -> State:
    if verdict == "refused":
        return state.holding(worker, None)
    if n:  # an answer out of order is kept for when its turn comes: here it is asked again
        return state
    durable = (*holder.durable, holder.flight[0])
    return state.holding(worker, holder._replace(durable=durable, flight=holder.flight[1:]))


def parking(rules: Rules, state: State, worker: str) -> Iterator[Step]:
    """Only with nothing under way and nothing to do. An unknown outcome is not tried again."""
    holder = state.holder(worker)
    if holder is None or holder.flight or holder.last.busy:
        return
    read = holder.last.read
    if not rules.only_what_is_durable_is_read:
        read = len(state.letters)  # applied in memory, and no row written for it
    let_go = Late(worker, holder.epoch, read)
    parked, done = put_away(rules, state, let_go)
    if done:
        yield f"{worker} parks", parked.holding(worker, None)
    if state.budget.losses:
        lost = parked.spending(losses=1).holding(worker, None)
        yield f"{worker} {'parks' if done else 'does not park'}, the answer is lost", lost
        if state.late is None:
            slow = state.spending(losses=1).holding(worker, None)._replace(late=let_go)
            yield f"{worker}'s park is slow, it drops the run", slow


def put_away(rules: Rules, state: State, park: Late) -> tuple[State, bool]:
    last = state.journal[-1]
    assert last is not None
    mail = park.read == len(state.letters)
    if rules.only_what_is_durable_is_read:
        mail = mail and last.read == park.read
    may = (
        state.owner == park.worker
        and (state.epoch == park.epoch or not rules.parking_looks_at_the_epoch)
        and (mail or not rules.parking_looks_at_mail)
    )
    return (state._replace(owner=None, due=False), True) if may else (state, False)


def arriving(rules: Rules, state: State) -> State:
    late = state.late
    assert late is not None
    state = state._replace(late=None)
    if late.row is not None:
        return written(rules, state, late.seq, late.row)[0]
    return put_away(rules, state, late)[0]


def claiming(state: State, worker: str) -> Iterator[Step]:
    """A due run without an owner is loaded by whoever claims it."""
    if state.owner is not None or not state.due or state.holder(worker) is not None:
        return
    epoch = state.epoch + 1
    rows = tuple(row for row in state.journal if row is not None)
    claimed = state._replace(owner=worker, epoch=epoch)
    yield f"{worker} claims", claimed.holding(worker, Holder(epoch, rows))


def dying(rules: Rules, state: State, worker: str) -> Iterator[Step]:
    """The owner is declared dead by the other one, and goes on as if nothing had happened."""
    if state.owner != worker or not state.budget.deaths:
        return
    spent = state.spending(deaths=1)
    last = state.journal[-1]
    assert last is not None
    if rules.takeover_writes_a_row:
        row = Row(f"!{state.budget.deaths}", last.name, last.read, last.busy)
        spent = spent._replace(journal=(*state.journal, row))
    freed = spent._replace(owner=None, epoch=state.epoch + 1, due=True)
    yield f"{worker} is declared dead and goes on", freed


def reconciling(rules: Rules, state: State, worker: str) -> Iterator[Step]:
    """At a beat: what the store has under my name and I do not hold is freed, what I hold and the
    store does not give me is dropped."""
    if not rules.reconciling:
        return
    holder = state.holder(worker)
    if holder is None and state.owner == worker:
        yield f"{worker} gives back what it does not hold", state._replace(owner=None, due=True)
    elif holder is not None and (state.owner, state.epoch) != (worker, holder.epoch):
        yield f"{worker} drops what is not its own", state.holding(worker, None)
