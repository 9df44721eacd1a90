"""Whatever fails in whatever saga, and however a run is retried: what was taken back does not count
as done, nothing is taken back twice, and what could not be taken back is not done again unless
somebody named the place to go on from.

Each example is a few dozen moves at most: what never ends would be a fault, and is told as one.
"""

from __future__ import annotations

from hypothesis import event, given, settings
from hypothesis import strategies as st

from perdure.kernel.run import GRACE
from perdure.model.errors import InvalidRequest
from tests.property.workflow.takings import Op, World, programs, sequences, workflow_of
from tests.unit.kernel.code.board import Board

#: What happens next, and to which of those that it may happen to. After these everything completes,
#: which takes no more than so many moves.
MOVES = st.tuples(
    st.sampled_from(["complete"] * 5 + ["fail"] * 3 + ["cancel"] * 2 + ["late", "reload"]),
    st.integers(0, 11),
)
PLAYED = st.lists(MOVES, min_size=8, max_size=40)
LAST = 150
RETRIES = 4


class Run:
    """A run that is played. `once`: whether nothing that stands is ever done again: then nobody
    names a place to go on from, since what comes after that is."""

    def __init__(self, ops: list[Op], *, once: bool) -> None:
        self.board = Board(workflow_of(ops))
        self.world = World(self.board)
        self.once = once
        self.retries = 0

    def play(self, drawn: list[tuple[str, int]]) -> None:
        """Until it has ended for good."""
        moves = iter([*drawn, *[("complete", 0)] * LAST])
        while self.board.run.status == "running" or self.retry(next(moves)[1]):
            if self.board.run.status == "running":
                self.go_on(*next(moves))
                self.check()
        self.board.machine.close()

    def go_on(self, what: str, number: int) -> None:
        """The next thing that happens."""
        pending = sorted(self.board.pending)
        if what == "reload":
            self.board.reload()
        elif what == "cancel":
            self.board.cancel("enough")
        elif not pending or (what == "late" and GRACE in self.board.waiting):
            self.world.fire()
        elif what == "fail":
            self.world.fail(pending[number % len(pending)])
        else:
            self.world.complete(pending[number % len(pending)])

    def retry(self, number: int) -> bool:
        """It has ended, and is retried; False where it is not."""
        if self.board.end.status == "completed":
            assert all(self.world.stands[thing] for thing in self.board.result), "not done"
            return False
        if self.retries == RETRIES:
            return False
        self.retries += 1
        made = sorted(node for node in self.board.run.nodes if node != GRACE)
        named = bool(made) and number % 3 == 2 and not self.once
        try:
            self.board.retry(made[number // 3 % len(made)] if named else None)
        except InvalidRequest as refused:
            event(f"refused: {str(refused).partition(' ')[2]}"[:40])
        else:
            event("retried from a place" if named else "retried")
            if named:
                self.world.stuck.clear()
        return True

    def check(self) -> None:
        """What holds at any time."""
        stands = self.world.stands
        assert all(count >= 0 for count in stands.values()), "taken back twice"
        assert not self.once or all(count <= 1 for count in stands.values()), "done twice"


@settings(max_examples=400)
@given(programs(), PLAYED)
def test_what_was_taken_back_is_not_done_and_what_could_not_be_is_not_done_again(
    ops: list[Op], drawn: list[tuple[str, int]]
) -> None:
    Run(ops, once=False).play(drawn)


@settings(max_examples=400)
@given(sequences(), PLAYED)
def test_where_one_thing_is_done_after_another_none_is_ever_done_twice(
    ops: list[Op], drawn: list[tuple[str, int]]
) -> None:
    Run(ops, once=True).play(drawn)
