"""The undo phase as people see it: in lines, in the picture, and of a run that others work on."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perdure import Retry, Saga, SagaContext
from perdure.cli.nodes import NodeBook
from perdure.client.engine import Engine
from perdure.model.errors import RunFailed
from tests.cli.commands import perdure
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


async def quick(ctx: SagaContext[int]) -> None:
    await asyncio.sleep(ctx.payload)


async def ship(ctx: SagaContext[int]) -> None:
    raise OSError("no truck")


async def undo(ctx: SagaContext[int]) -> None:
    if ctx.attempt == 1:
        raise OSError("bank is closed")


async def stuck(ctx: SagaContext[int]) -> None:
    raise OSError("nobody answers")


def shop(name: str = "shop") -> Saga[int]:
    return (
        Saga(name, int, max_duration="1h")
        .step("reserve", quick, undo=stuck)
        .step("charge", quick, undo=undo, undo_retry=Retry(2, initial=0.01))
        .step("ship", ship)
    )


def told() -> tuple[NodeBook, list[str]]:
    """What a run of the saga came to, and every change in words."""
    book, texts = NodeBook(), []

    async def main() -> None:
        async with engine_on(VirtualStore(), shop()) as engine:
            started = await engine.start(shop(), 1, id="1")
            with pytest.raises(RunFailed):
                await started.result()
            async for record in started.history():
                texts.extend(f"{one.node} {one.text}".strip() for one in book.take(record))

    run(main())
    return book, texts


@pytest.mark.rule("S-17")
def test_what_is_undone_is_told_as_it_happens() -> None:
    book, texts = told()
    assert texts[texts.index("ship failed (attempt 1): OSError: no truck") + 1 :] == [
        "it failed: what was done is undone, the last first",
        "charge~undo started (attempt 1)",
        "charge~undo attempt 1 failed: OSError: bank is closed; attempt 2 in 0.01 s",
        "charge~undo completed (attempt 2, 0.00 s)",
        "charge undone",
        "reserve~undo started (attempt 1)",
        "reserve~undo failed (attempt 1): OSError: nobody answers",
    ]
    assert {node: view.status for node, view in book.nodes.items()} == {
        "reserve": "completed", "charge": "compensated", "ship": "failed",
        "charge~undo": "completed", "reserve~undo": "failed",
    }  # fmt: skip


def drawn(book: NodeBook, order: Sequence[str]) -> list[list[str]]:
    console = pytest.importorskip("rich.console", reason="rich is not installed")
    from perdure.cli.picture import Picture

    out = io.StringIO()
    console.Console(file=out, width=90).print(Picture(book, order).drawing(40))
    return [line.split()[:3] for line in out.getvalue().splitlines()]


def test_the_picture_draws_undos_below_the_plan_once_they_begin() -> None:
    book, _ = told()
    assert drawn(book, shop().planned) == [
        ["✓", "reserve", "completed"],
        ["↶", "charge", "compensated"],
        ["✗", "ship", "failed"],
        ["✓", "charge~undo", "completed"],
        ["✗", "reserve~undo", "failed"],
    ]
    assert drawn(NodeBook(), shop().planned) == [["reserve"], ["charge"], ["ship"]]


def test_nodes_of_which_nobody_knows_what_they_did_are_named() -> None:
    book, _ = told()
    record: dict[str, Any] = {"do": "BeginCompensation", "seq": 1, "reason": "cancel"}
    changes = book.take({**record, "time": None, "unknown": ["charge", "ship"]})
    assert [change.text for change in changes] == [
        "canceled: what was done is undone, the last first",
        "nobody knows what charge, ship did",
    ]


def test_watch_follows_a_saga_that_is_undone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"

    async def main() -> str:
        async with Engine(url, [shop()]) as engine:
            await engine.start(shop(), 1, id="1")
            words = ["watch", "shop/1", "--store", url, "--timeout", "30s"]
            result = await asyncio.to_thread(lambda: perdure(*words, code=1))
            return result.stderr

    text = asyncio.run(main())
    for line in ("charge   undone", "reserve~undo  failed (attempt 1): OSError: nobody answers"):
        assert line in text
