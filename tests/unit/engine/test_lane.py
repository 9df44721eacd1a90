"""Lane: rows go together while a batch is under way, and every row gets exactly its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from perdure.engine.lane import FIRST_DELAY, LONGEST_DELAY, PART, Lane
from perdure.model.errors import InvalidRequest, StoreError
from tests.virtual.loop import run, settle

Done = Callable[[Any], None]


class Sink:
    """What a lane sends to. Batches are answered by hand; `at` says when each was sent."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.at: list[float] = []
        self._done: list[Done] = []

    def send(self, rows: Sequence[str], done: Done) -> None:
        self.batches.append(list(rows))
        self.at.append(asyncio.get_running_loop().time())
        self._done.append(done)

    def answer(self, error: Exception | None = None) -> None:
        """Answer the latest batch: with the rows in capitals, or this error."""
        self._done[-1](error or [row.upper() for row in self.batches[-1]])

    def answer_first(self) -> None:
        """Answer the first batch, however late."""
        self._done[0]([row.upper() for row in self.batches[0]])


class Pen:
    """A lane with its sink, and what everybody was answered."""

    def __init__(self, **options: Any) -> None:
        self.sink = Sink()
        self.lane: Lane[str, str] = Lane(self.sink.send, **{"alone": lambda: False, **options})
        self.answers: list[tuple[str, Any]] = []

    def submit(self, *rows: str) -> None:
        for row in rows:
            self.lane.submit(row, lambda answer, row=row: self.answers.append((row, answer)))


def test_an_idle_lane_writes_what_came_in_one_turn_of_the_loop_together() -> None:
    async def main() -> None:
        pen = Pen()
        pen.submit("a", "b")
        await settle()
        assert pen.sink.batches == [["a", "b"]]
        assert pen.sink.at == [0.0]
        pen.sink.answer()
        assert pen.answers == [("a", "A"), ("b", "B")]

    run(main())


def test_an_idle_lane_of_an_eager_store_writes_before_submit_returns() -> None:
    async def main() -> None:
        answers: list[Any] = []
        lane: Lane[str, str] = Lane(
            lambda rows, done: done([row.upper() for row in rows]), alone=lambda: True
        )
        for row in "ab":
            lane.submit(row, answers.append)
            assert answers[-1] == row.upper()

    run(main())


def test_what_an_answer_submits_is_written_after_it_in_order() -> None:
    async def main() -> None:
        sent: list[list[str]] = []

        def send(rows: Sequence[str], done: Done) -> None:
            sent.append(list(rows))
            done(list(rows))

        lane: Lane[str, str] = Lane(send, alone=lambda: True)
        seen: list[str] = []

        def then(row: str) -> None:
            seen.append(row)
            if row < "e":
                lane.submit(chr(ord(row) + 1), then)

        lane.submit("a", then)
        await settle()
        assert seen == list("abcde")
        assert sent == [["a"], ["b"], ["c"], ["d"], ["e"]]

    run(main())


def test_rows_gather_while_a_batch_is_under_way_and_go_together_in_the_next() -> None:
    async def main() -> None:
        pen = Pen()
        pen.submit("a")
        await settle()
        pen.submit("b")
        await settle()
        pen.submit("c", "d")
        await settle()
        assert pen.sink.batches == [["a"]]
        pen.sink.answer()
        await settle()
        assert pen.sink.batches == [["a"], ["b", "c", "d"]]

    run(main())


def test_a_batch_is_bounded_and_the_rest_follows_in_order() -> None:
    async def main() -> None:
        pen = Pen(most=2)
        pen.submit("a", "b", "c", "d", "e")
        for _ in range(3):
            await settle()
            pen.sink.answer()
        assert pen.sink.batches == [["a", "b"], ["c", "d"], ["e"]]
        assert [row for row, _ in pen.answers] == list("abcde")

    run(main())


def test_the_same_batch_is_sent_again_until_its_outcome_is_known_and_nothing_newer_before() -> None:
    # scenario 8
    async def main() -> None:
        pen = Pen()
        pen.submit("a", "b")
        await settle()
        pen.submit("c")
        for _ in range(4):
            pen.sink.answer(StoreError("the disk is away"))
            await asyncio.sleep(LONGEST_DELAY)
        assert pen.sink.batches == [["a", "b"]] * 5
        assert pen.answers == []
        pen.sink.answer()
        await settle()
        assert pen.sink.batches[5:] == [["c"]]
        assert pen.answers == [("a", "A"), ("b", "B")]

    run(main())


def test_delays_grow_to_a_bound_and_begin_anew_after_a_success() -> None:
    async def main() -> list[float]:
        pen = Pen()
        pen.submit("a")
        await settle()

        async def fail(times: int) -> None:
            for _ in range(times):
                pen.sink.answer(StoreError("the disk is away"))
                await asyncio.sleep(LONGEST_DELAY)

        await fail(9)
        pen.sink.answer()
        pen.submit("b")
        await settle()
        failed_at = asyncio.get_running_loop().time()
        await fail(1)
        at = pen.sink.at
        first = [round(b - LONGEST_DELAY * i, 3) for i, b in enumerate(at[1:10])]
        return [*first, round(at[-1] - failed_at, 3)]

    *first, again = run(main())
    assert first == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert again == FIRST_DELAY


def test_a_batch_that_can_never_be_written_is_halved_down_to_the_one_row() -> None:
    async def main() -> None:
        sent: list[list[str]] = []

        def send(rows: Sequence[str], done: Done) -> None:
            sent.append(list(rows))
            done(InvalidRequest("no row named d") if "d" in rows else [r.upper() for r in rows])

        answers: dict[str, Any] = {}
        lane: Lane[str, str] = Lane(send, alone=lambda: False)
        for row in "abcdefgh":
            lane.submit(row, lambda answer, row=row: answers.update({row: answer}))
        await lane.drain()
        assert isinstance(answers.pop("d"), InvalidRequest)
        assert answers == {row: row.upper() for row in "abcefgh"}
        assert sent[0] == list("abcdefgh")
        # Older halves first, so that the order of rows is kept among those written.
        assert [row for batch in sent for row in batch if "d" not in batch] == list("abcefgh")

    run(main())


def test_newer_rows_wait_until_the_halves_are_written() -> None:
    async def main() -> None:
        sent: list[list[str]] = []
        lane: Lane[str, str]

        def send(rows: Sequence[str], done: Done) -> None:
            sent.append(list(rows))
            if len(sent) == 1:
                lane.submit("new", lambda _: None)
                done(InvalidRequest("not together"))
            else:
                done(list(rows))

        lane = Lane(send, alone=lambda: False)
        lane.submit("a", lambda _: None)
        lane.submit("b", lambda _: None)
        await lane.drain()
        assert sent == [["a", "b"], ["a"], ["b"], ["new"]]

    run(main())


def test_drain_returns_when_everything_is_answered_and_at_once_when_idle() -> None:
    async def main() -> None:
        pen = Pen()
        await pen.lane.drain()
        pen.submit("a")
        draining = asyncio.ensure_future(pen.lane.drain())
        await settle()
        pen.submit("b")
        pen.sink.answer()
        await settle()
        assert not draining.done()
        pen.sink.answer()
        await settle()
        assert draining.done()

    run(main())


def test_an_abandoned_lane_sends_nothing_more_and_answers_nobody() -> None:
    async def main() -> None:
        pen = Pen()
        pen.submit("a")
        await settle()
        pen.sink.answer(StoreError("the disk is away"))
        pen.submit("b")
        draining = asyncio.ensure_future(pen.lane.drain())
        await settle()
        pen.lane.abandon()
        await asyncio.sleep(100)
        assert draining.done()
        assert pen.sink.batches == [["a"]]
        pen.sink.answer()  # a late answer
        assert pen.answers == []

    run(main())


def test_a_late_answer_to_an_abandoned_batch_is_nobody_elses() -> None:
    async def main() -> None:
        pen = Pen()
        pen.submit("a")
        await settle()
        pen.lane.abandon()
        pen.submit("b")
        await settle()
        assert pen.sink.batches == [["a"], ["b"]]
        pen.sink.answer_first()
        assert pen.answers == []
        pen.sink.answer()
        assert pen.answers == [("b", "B")]

    run(main())


def test_an_answer_that_cannot_be_taken_keeps_no_other_row_from_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(answer: Any) -> None:
        raise ValueError("this one is broken")

    async def main() -> None:
        pen = Pen()
        pen.lane.submit("a", broken)
        pen.submit("b")
        await settle()
        pen.submit("c")
        pen.sink.answer()
        await settle()
        assert pen.answers == [("b", "B")]
        assert pen.sink.batches[1:] == [["c"]]

    run(main())
    assert "this one is broken" in caplog.text


def test_a_store_that_raises_instead_of_answering_is_asked_again() -> None:
    async def main() -> None:
        times = 0

        def send(rows: Sequence[str], done: Done) -> None:
            nonlocal times
            times += 1
            if times == 1:
                raise StoreError("raised, not answered")
            done(list(rows))

        lane: Lane[str, str] = Lane(send, alone=lambda: True)
        answers: list[Any] = []
        lane.submit("a", answers.append)
        await lane.drain()
        assert answers == ["a"]

    run(main())


MANY = [f"r{n:03}" for n in range(3 * PART)]


def test_of_many_answers_some_are_told_and_followed_before_the_next() -> None:
    async def main() -> None:
        pen = Pen()
        seen: list[str] = []
        for row in MANY:
            pen.lane.submit(
                row, lambda answer: asyncio.get_running_loop().call_soon(seen.append, answer)
            )
        pen.submit("last")
        await settle()
        pen.lane.submit("next", lambda answer: None)
        pen.sink.answer_first()
        assert pen.sink.batches[1:] == [["next"]], "the store goes on while answers are told"
        assert seen == pen.answers == []
        await asyncio.sleep(0)
        assert len(seen) == PART
        assert pen.answers == []
        await settle()
        assert seen == [row.upper() for row in MANY]
        assert pen.answers == [("last", "LAST")]

    run(main())


def test_drain_waits_until_every_answer_is_told() -> None:
    async def main() -> None:
        pen = Pen()
        pen.submit(*MANY)
        await settle()
        drained = asyncio.ensure_future(pen.lane.drain())
        await settle()
        pen.sink.answer()
        assert len(pen.answers) == PART
        await drained
        assert [row for row, _ in pen.answers] == MANY

    run(main())


def test_an_abandoned_lane_tells_no_more_of_many_answers() -> None:
    async def main() -> None:
        pen = Pen()
        pen.submit(*MANY)
        await settle()
        pen.sink.answer()
        pen.lane.abandon()
        await settle()
        assert len(pen.answers) == PART

    run(main())


def test_answers_that_come_while_others_are_told_keep_their_order() -> None:
    async def main() -> None:
        pen = Pen()
        pen.submit(*MANY)
        await settle()
        pen.submit("small")
        pen.sink.answer_first()
        pen.sink.answer()
        await settle()
        assert [row for row, _ in pen.answers] == [*MANY, "small"]

    run(main())


# ------------------------------------------------------------------------- rows that are sent alone


def test_an_answer_that_is_there_at_once_is_returned_and_not_told() -> None:
    async def main() -> None:
        lane: Lane[str, str] = Lane(
            lambda rows, done: done([row.upper() for row in rows]), at_once=True
        )
        told: list[Any] = []
        assert [lane.write(row, told.append) for row in "ab"] == ["A", "B"]
        assert told == []

    run(main())


def test_a_row_sent_alone_may_be_answered_later_and_nothing_newer_is_sent_before() -> None:
    async def main() -> None:
        pen = Pen(at_once=True)
        told: list[Any] = []
        assert pen.lane.write("a", told.append) is None
        pen.submit("b")
        await settle()
        assert pen.sink.batches == [["a"]]
        pen.sink.answer()
        assert told == ["A"]
        await settle()
        assert pen.sink.batches == [["a"], ["b"]]
        pen.sink.answer()
        assert pen.answers == [("b", "B")]

    run(main())


@pytest.mark.parametrize("raises", [True, False])
def test_a_row_sent_alone_is_sent_again_while_the_store_fails(raises: bool) -> None:
    async def main() -> None:
        sent: list[str] = []

        def send(rows: Sequence[str], done: Done) -> None:
            sent.extend(rows)
            if len(sent) > 2:
                done([row.upper() for row in rows])
            elif raises:
                raise StoreError("busy")
            else:
                done(StoreError("busy"))

        lane: Lane[str, str] = Lane(send, at_once=True)
        told: list[Any] = []
        assert lane.write("a", told.append) is None
        await asyncio.sleep(10 * LONGEST_DELAY)
        assert (sent, told) == (["a"] * 3, ["A"])
        assert lane.write("b", told.append) == "B"

    run(main())


def test_a_row_sent_alone_that_can_never_be_written_is_told_so_once() -> None:
    async def main() -> None:
        error = InvalidRequest("no")
        lane: Lane[str, str] = Lane(lambda rows, done: done(error), at_once=True)
        told: list[Any] = []
        assert lane.write("a", told.append) is None
        assert told == [error]

    run(main())


def test_what_was_answered_before_the_store_raised_counts() -> None:
    async def main() -> None:
        def send(rows: Sequence[str], done: Done) -> None:
            done([row.upper() for row in rows])
            raise StoreError("after all")

        lane: Lane[str, str] = Lane(send, at_once=True)
        assert lane.write("a", pytest.fail) == "A"

    run(main())


def test_a_row_that_comes_while_another_is_sent_alone_goes_after_it() -> None:
    async def main() -> None:
        sent: list[list[str]] = []
        told: list[Any] = []

        def send(rows: Sequence[str], done: Done) -> None:
            sent.append(list(rows))
            if rows == ("a",):
                lane.submit("b", told.append)
            done([row.upper() for row in rows])

        lane: Lane[str, str] = Lane(send, at_once=True)
        assert lane.write("a", pytest.fail) == "A"
        await settle()
        assert sent == [["a"], ["b"]]
        assert told == ["B"]

    run(main())


def test_a_late_answer_to_an_abandoned_row_that_was_sent_alone_is_nobody_elses() -> None:
    async def main() -> None:
        pen = Pen(at_once=True)
        pen.submit("a")
        pen.lane.abandon()
        pen.submit("b")
        await settle()
        pen.sink.answer_first()
        assert pen.answers == []
        pen.sink.answer()
        assert pen.answers == [("b", "B")]

    run(main())
