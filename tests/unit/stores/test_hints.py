"""Hints: many reasons in one turn are one call, and nobody is called who does not listen."""

from __future__ import annotations

import asyncio

from perdure.stores.answers import Posted
from perdure.stores.hints import Hints
from perdure.stores.rows import Message


def test_many_reasons_in_one_turn_are_one_call_made_soon_and_not_at_once() -> None:
    async def main() -> None:
        hints, calls = Hints(), []
        hints.subscribe(lambda: calls.append("a"))
        hints.subscribe(lambda: calls.append("b"))
        for _ in range(3):
            hints.give()
        assert calls == []
        await asyncio.sleep(0)
        assert calls == ["a", "b"]
        await asyncio.sleep(0)
        hints.give()
        await asyncio.sleep(0)
        assert calls == ["a", "b"] * 2

    asyncio.run(main())


def test_a_subscription_ends_at_once_even_when_its_call_is_on_its_way() -> None:
    async def main() -> None:
        hints, calls = Hints(), []
        end = hints.subscribe(lambda: calls.append(1))
        assert hints
        hints.give()
        end()
        end()
        assert not hints
        await asyncio.sleep(0)
        assert calls == []

    asyncio.run(main())


def test_closing_ends_them_all() -> None:
    async def main() -> None:
        hints, calls = Hints(), []
        end = hints.subscribe(lambda: calls.append(1))
        hints.subscribe(lambda: calls.append(2))
        hints.give()
        hints.end_all()
        end()
        await asyncio.sleep(0)
        assert calls == []
        assert not hints

    asyncio.run(main())


def test_a_listener_whose_loop_is_gone_is_forgotten() -> None:
    hints, calls = Hints(), []

    async def first() -> None:
        hints.subscribe(lambda: calls.append("first"))

    async def second() -> None:
        hints.subscribe(lambda: calls.append("second"))
        hints.give()
        await asyncio.sleep(0)
        assert calls == ["second"]

    asyncio.run(first())
    asyncio.run(second())
    hints.give()
    assert not hints


def test_who_overhears_posts_is_given_them_and_no_hint_of_them() -> None:
    async def main() -> None:
        hints, calls = Hints(), []
        end = hints.subscribe(
            lambda: calls.append("hint"),
            lambda messages, answers: calls.append((messages, answers)),
        )
        hints.subscribe(lambda: calls.append("other"))
        messages, answers = [Message("order", "1", "m", "signal")], [Posted("posted", 1, b"k")]
        for _ in range(2):
            hints.give_posted(messages, answers)
        assert calls == []
        await asyncio.sleep(0)
        assert calls == [(messages, answers), "other", (messages, answers)]
        calls.clear()
        hints.give_posted(messages, answers)
        hints.give()
        end()
        await asyncio.sleep(0)
        assert calls == ["other"], "ended at once"

    asyncio.run(main())
