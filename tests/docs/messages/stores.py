"""Stores that cannot be used, and runs that stall: the operator is told."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perdure.client.client import Client
from perdure.client.engine import Engine
from perdure.flow.step import step
from perdure.graph import Graph
from tests.docs.messages.case import Case, Section, raised
from tests.docs.messages.documents import A, graph

ORDER = Graph.load(graph([A], []))
NEWER = Graph.load(graph([A], [], version="2"))


async def opened(url: str) -> Any:
    async with Client(url):
        return url


def opening(prepare: Callable[[Path], None], url: str) -> Callable[[Path], Any]:
    """Open the store after this was done in the folder."""

    def act(folder: Path) -> Any:
        prepare(folder)
        return opened(url)

    return act


def nothing(_: Path) -> None:
    pass


def changed(*statements: str) -> Callable[[Path], None]:
    """orders.db of perdure, and then these statements."""

    def prepare(folder: Path) -> None:
        asyncio.run(opened("sqlite:///orders.db"))
        with sqlite3.connect(folder / "orders.db") as db:
            for statement in statements:
                db.execute(statement)
        db.close()

    return prepare


def foreign(folder: Path) -> None:
    with sqlite3.connect(folder / "orders.db") as db:
        db.execute("CREATE TABLE orders (id)")
    db.close()


def no_database(folder: Path) -> None:
    (folder / "orders.db").write_text("id,total\n" * 500, encoding="utf-8")


URL = "sqlite:///orders.db"
FILES = Section(
    "Stores that cannot be opened",
    "The file is left as it was. A `StoreError` in the middle of work is passing: the engine tries "
    "again with growing delays, and says so in its log.",
    [
        raised("store.no-folder", "a folder that is not there", "sqlite:///data/orders.db",
               opening(nothing, "sqlite:///data/orders.db"), lang="text"),
        raised("store.folder", "a folder where a file belongs", "sqlite:///orders",
               opening(lambda f: (f / "orders").mkdir(), "sqlite:///orders"), lang="text"),
        raised("store.no-database", "a file that is no database", URL,
               opening(no_database, URL), lang="text"),
        raised("store.foreign", "a database of another program", URL, opening(foreign, URL),
               lang="text"),
        raised("store.newer", "a database of a newer perdure", URL,
               opening(changed("UPDATE meta SET value = '99' WHERE key = 'schema'"), URL),
               lang="text"),
        raised("store.other-edition", "a database of a development version", URL,
               opening(changed("UPDATE meta SET value = 'x' WHERE key = 'migration 0001'"), URL),
               lang="text"),
        raised("store.no-schema", "a database that lost its version", URL,
               opening(changed("DELETE FROM meta WHERE key = 'schema'"), URL), lang="text"),
        raised("store.hash", "a # in the name of a file", "sqlite:///orders#1.db",
               opening(nothing, "sqlite:///orders#1.db"), lang="text"),
    ],
)  # fmt: skip


@step
async def work() -> str:
    return "done"


def stalled(key: str, title: str, how: str, spoil: Callable[[Path], None], do: str) -> Case:
    """Why a run stalls when it is taken after this was done to the store."""

    async def started() -> None:
        async with Client(URL) as client:
            await client.start(ORDER, id="1")

    async def taken() -> str:
        async with Engine(URL, [NEWER, work]) as engine:
            handle = engine.get(ORDER, "1")
            while (info := await handle.describe()).stalled is None:
                assert info.status == "running", info
                await asyncio.sleep(0.01)
            return info.stalled or ""

    def say(folder: Path) -> str:
        asyncio.run(started())
        spoil(folder)
        return asyncio.run(taken())

    return Case(f"stall.{key}", title, how, say, do, "text")


def spoiled(statement: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        with sqlite3.connect(folder / "orders.db") as db:
            db.execute(statement)
        db.close()

    return spoil


async def _without_step() -> str:
    """A step that a template names is not there: known only when the node is reached."""
    named = Graph.load(graph([{**A, "spec": {"step": "{{input.step}}"}}], []))
    async with Engine("memory:", [named, work]) as engine:
        handle = await engine.start(named, {"step": "wrok"}, id="1")
        while (info := await handle.describe()).stalled is None:
            assert info.status == "running", info
            await asyncio.sleep(0.01)
        return info.stalled or ""


STALLS = Section(
    "Runs that cannot go on",
    "A run that meets what no attempt can mend is set aside with its reason, which `perdure why` "
    "and `perdure show` tell. Nothing of it is lost: when the cause is mended it goes on, as soon "
    "as a worker opens or `perdure unpause` asks for it.",
    [
        Case("stall.no-step", "a step that no worker has", '{"step": "{{input.step}}"}',
             lambda _: asyncio.run(_without_step()),
             "Give the step to a worker, `perdure worker … steps.py`, and open it anew."),
        stalled("no-definition", "its version of the document is gone", "DELETE FROM definition",
                spoiled("DELETE FROM definition"),
                "Publish that version again: `perdure publish` of the file as it was."),
        stalled("journal", "its journal cannot be read",
                "a journal row that a newer perdure wrote, or that is damaged",
                spoiled("UPDATE journal SET body = x'7B7D'"),
                "Let the version of perdure that wrote it take it, or restore a backup."),
    ],
)  # fmt: skip
SECTIONS = [FILES, STALLS]
