"""Sagas on the command line: run, shown, drawn, and what is only for documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import perdure

SHOP = """
from perdure import Context, Saga, SagaContext, step, workflow


@step
async def charge(total: int) -> str:
    return f"ch_{total}"


async def refund(ctx: SagaContext[int]) -> None:
    ctx.output(charge)


def ship(ctx: SagaContext[int]) -> str:
    if ctx.payload > 100:
        raise ValueError("too much")
    return ctx.output(charge)


@workflow(max_duration="1h")
async def pack(ctx: Context, total: int) -> int:
    return total


order = Saga("order", int).step("charge", charge, undo=refund).step("ship", ship)
packed = Saga("packed", int).step("pack", pack)
"""
STORE = ("--store", "sqlite:///shop.db")


@pytest.fixture(autouse=True)
def shop(folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")


def run(*words: str, code: int = 0) -> str:
    return perdure("run", "shop.py:order", *words, *STORE, code=code).output


def test_a_saga_is_run_like_any_workflow() -> None:
    assert json.loads(run("--input", "5", "--id", "a", "--json").splitlines()[-1])["output"] == {
        "charge": "ch_5", "ship": "ch_5",
    }  # fmt: skip
    assert json.loads(perdure("result", "order/a", *STORE).output) == {
        "charge": "ch_5", "ship": "ch_5",
    }  # fmt: skip


def test_whoever_is_to_take_a_saga_that_was_started_needs_its_code_alone() -> None:
    said = perdure("start", "shop.py:order", "--input", "5", "--id", "a", *STORE).stderr
    serve, go_on = said.partition("to take it: ")[2].split(" is one, and so is ")
    assert serve == "perdure worker shop.py:order --store sqlite:///shop.db"
    assert go_on == "perdure run shop.py:order --id a --store sqlite:///shop.db\n"


def test_a_saga_that_failed_says_what_and_is_drawn_undone() -> None:
    said = run("--input", "500", "--id", "a", code=1)
    assert "node ship, attempt 1: ValueError: too much" in said
    assert "charge~undo" in said
    drawn = perdure("draw", "order/a", *STORE).output
    assert "compensated" in drawn
    assert "failed" in drawn
    assert "ship, attempt 1: ValueError: too much" in perdure("why", "order/a", *STORE).output
    assert "BeginCompensation" in perdure("show", "order/a", "--history", *STORE).output


def test_a_saga_is_drawn_from_its_file_and_from_the_store() -> None:
    drawn = perdure("draw", "shop.py:order").output
    assert "charge --> ship" in drawn
    assert "with undo" in drawn
    run("--input", "1")
    assert perdure("draw", "order", *STORE).output == drawn
    said = perdure("draw", "shop.py:pack", code=2).output
    assert "pack is code; documents and sagas are drawn" in said


def test_a_saga_asks_for_runs_of_what_stands_in_its_file() -> None:
    perdure("run", "shop.py:packed", "--input", "3", "--id", "a", *STORE)
    assert json.loads(perdure("result", "packed/a", *STORE).output) == {"pack": 3}


def test_a_saga_is_started_by_name_where_its_code_is_not() -> None:
    run("--input", "1", "--id", "a")
    assert "order/b" in perdure("start", "order", "--input", "2", "--id", "b", *STORE).output
    run("--id", "b")
    assert json.loads(perdure("result", "order/b", *STORE).output)["ship"] == "ch_2"


@pytest.mark.parametrize("command", ["lint", "rehearse", "publish"])
def test_what_is_for_documents_says_so(command: str) -> None:
    assert "this is about documents" in perdure(command, "shop.py", code=2).output


def test_the_source_of_a_saga_is_shown_without_its_code() -> None:
    run("--input", "1")
    source = json.loads(perdure("definitions", "order", "--source", *STORE).output)
    assert [step["name"] for step in source["steps"]] == ["charge", "ship"]


SLOW = """
import asyncio
from pathlib import Path

from perdure import Saga, SagaContext


async def quick(ctx: SagaContext[int]) -> None: ...


def ship(ctx: SagaContext[int]) -> None:
    raise OSError("no truck")


async def undo(ctx: SagaContext[int]) -> None:
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    if ctx.payload > 1:
        raise OSError("nobody answers")


order = (
    Saga("order", int, max_duration="1h").step("charge", quick, undo=undo).step("ship", ship)
)
"""


def test_a_run_that_goes_on_undoing_says_so_and_at_its_end_why_it_failed(folder: Path) -> None:
    (folder / "shop.py").write_text(SLOW, encoding="utf-8")
    run("--input", "1", "--id", "a", "--timeout", "0.5", "--grace", "0", code=4)
    why = perdure("why", "order/a", *STORE).output
    assert "what it did is being undone: node ship failed: OSError: no truck\n" in why
    assert "fails unless it ends" not in why  # undoing has no end
    shown = perdure("show", "order/a", *STORE).output
    assert "undoing   node ship failed: OSError: no truck\n" in shown
    (folder / "go").touch()
    said = run("--id", "a", code=1)
    assert "order/a goes on undoing what was done, from charge~undo\n" in said
    assert (
        "perdure: order/a failed\n  node ship, attempt 1: OSError: no truck\n  undone: charge\n"
        in said
    )
    again = "is done again: perdure retry order/a --store"
    assert f"When the cause is mended, what failed, or was undone, {again}" in said
    why = perdure("why", "order/a", *STORE).output
    assert "What failed, or was undone, is done again by: perdure retry order/a" in why
    ended = perdure("show", "order/a", *STORE).output
    assert "undoing" not in ended


def test_an_undo_that_failed_is_named_where_the_run_has_failed(folder: Path) -> None:
    (folder / "shop.py").write_text(SLOW, encoding="utf-8")
    (folder / "go").touch()
    said = run("--input", "2", "--id", "a", code=1)
    assert "  node charge~undo, attempt 1: OSError: nobody answers\n" in said
    assert "  not undone, somebody must look: charge\n" in said
    assert "undone: charge" not in said.replace("not undone, somebody must look: charge", "")
