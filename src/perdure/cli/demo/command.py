"""`perdure demo`: a worker is killed at a random moment of an order, a second one goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from perdure.cli.exits import RUN_FAILED, Trouble, usage
from perdure.cli.options import RunName, json_option
from perdure.cli.output import print_json

if TYPE_CHECKING:
    from perdure.cli.demo.account import Account, Check
    from perdure.cli.demo.story import Teller
    from perdure.cli.nodes import NodeBook

#: Seconds that the order takes at least, by the pace of its steps: a kill within it always falls
#: before the end.
LENGTH: Final = 1.7
ORDER: Final = RunName("order", "1001")
#: Seconds after which something is wrong.
PATIENCE: Final = 20
FILES: Final = ("order.json", "steps.py")


@click.command()
@click.option("--seed", type=click.IntRange(0), help="Draw the moment of an earlier kill again.")
@json_option
def demo(seed: int | None, as_json: bool) -> None:
    """Show a workflow survive a kill (a few seconds).

    A small shop on this machine, an order that goes through it, a process killed in the middle
    and a second one that goes on. Exits with 1 if anything promised did not hold.
    """
    import secrets
    import shutil
    import signal
    import tempfile

    from perdure.cli.demo.story import Teller
    from perdure.engine.handlers.http import HttpHandler

    if not HttpHandler.available():
        raise usage("the demo calls an HTTP service: pip install 'perdure[http]'")
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the processes it began
    folder = Path(tempfile.mkdtemp(prefix="perdure-demo-"))
    for name in FILES:
        shutil.copy(_example(name), folder / name)
    told = _act(Teller(err=as_json), folder, seed)
    if as_json:
        print_json(told)
    click.get_current_context().exit(0 if told["held"] else RUN_FAILED)


def _example(name: str) -> Path:
    """A file of the example, beside this one when installed, else in the repository."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "order", here.parents[4] / "examples" / "order"):
        if (folder / name).exists():
            return folder / name
    raise Trouble(f"the demo's {name} is missing from this installation", RUN_FAILED, "demo")


def _act(tell: Teller, folder: Path, seed: int) -> dict[str, Any]:
    from collections import Counter

    from perdure.cli.demo.account import accounts, checks
    from perdure.cli.demo.stage import Shop, read_lines
    from perdure.graph.definition import Graph

    types = {n.id: n.type for n in Graph.read(str(folder / "order.json")).plan.nodes.values()}
    with Shop(folder) as shop:
        _introduce(tell, types, folder, shop.url)
        words = ["run", "order.json", "--app", "steps.py", "--id", ORDER.id]
        words += ["--input", f'{{"order": "{ORDER.id}", "shop": "{shop.url}"}}']
        seconds = _first(tell, words, folder, seed)
        then = _book(folder)
        tell.chapter(2, "What was on the disk at that moment")
        tell.recorded(types, then)
        output = _second(tell, words, folder)
        witnessed = read_lines(folder / "shop.log") + read_lines(folder / "warehouse.log")
    now = _book(folder)
    asked = Counter(line["node"] for line in witnessed if "node" in line)
    charged = [line["charged"] for line in witnessed if "charged" in line]
    fetched = now.nodes["fetch"].output if "fetch" in now.nodes else None
    total = fetched["body"]["total"] if fetched else 0.0
    found = accounts(types, then, now, asked)
    held = checks(found, _status(folder), charged, total)
    _close(tell, found, held, witnessed, folder, output)
    return {
        "seed": seed,
        "killed_after": round(seconds, 3),
        "folder": str(folder),
        "nodes": [{"node": a.node, "at_kill": a.standing, "asked": a.asked} for a in found],
        "checks": [{"promise": check.promise, "held": check.held} for check in held],
        "held": all(check.held for check in held),
    }


def _introduce(tell: Teller, types: dict[str, str], folder: Path, url: str) -> None:
    tell.say("A program that is in the middle of something can die at any moment: a crash, a")
    tell.say("deployment, a power cut. Here one dies on purpose, and a second one goes on.")
    tell.say()
    tell.say("An order goes through these steps:")
    tell.plan(types)
    tell.say()
    tell.say(f"The shop is a process of its own, at {url}.")
    tell.say(f"Everything is in {folder}; runs are recorded in perdure.db there.")


def _first(tell: Teller, words: list[str], folder: Path, seed: int) -> float:
    """Run the first worker and kill it; how many seconds after the order began."""
    import random
    import time

    from perdure.cli.demo.stage import Worker, typed

    tell.chapter(1, "A first process begins, and is killed")
    tell.say(f"   $ {typed(words)}")
    seconds = random.Random(seed).uniform(0.02, 0.98) * LENGTH  # noqa: S311  no secret
    with Worker(words, folder, tell.heard) as worker:
        if not worker.started.wait(PATIENCE):
            raise Trouble("the first process did not begin", RUN_FAILED, "demo")
        time.sleep(seconds)
        alive = worker.kill()
        worker.wait(PATIENCE)
        if not alive:
            raise Trouble("the first process ended before it was killed", RUN_FAILED, "demo")
    tell.killed(seconds, seed)
    return seconds


def _second(tell: Teller, words: list[str], folder: Path) -> str:
    """Run the second worker to the end; what it printed."""
    from perdure.cli.demo.stage import Worker

    tell.chapter(3, "A second process, the same command")
    with Worker(words, folder, tell.heard) as worker:
        worker.wait(PATIENCE)
        tell.heard(worker.output.strip())
        return worker.output.strip()


def _close(
    tell: Teller,
    found: list[Account],
    held: list[Check],
    witnessed: list[dict[str, Any]],
    folder: Path,
    output: str,
) -> None:
    from perdure.cli.demo.stage import command
    from perdure.cli.demo.story import twice

    tell.chapter(4, "The account, by what the shop and the warehouse say they were asked")
    tell.account(found)
    tell.say()
    keys = {a.node: {w["key"] for w in witnessed if w.get("node") == a.node} for a in found}
    for line in twice(found, keys):
        tell.say(f"   {line}")
    tell.say()
    for check in held:
        tell.check(check)
    tell.say()
    tell.say(f"Look for yourself: cd {folder} && {command()} show {ORDER} --history")
    tell.say("(shop.log and warehouse.log there are the witnesses' own.)")


def _book(folder: Path) -> NodeBook:
    import asyncio

    from perdure.cli.nodes import NodeBook
    from perdure.cli.show import load_run

    book = NodeBook()
    for record in asyncio.run(load_run(_store(folder), ORDER))[1]:
        book.take(record)
    return book


def _status(folder: Path) -> str:
    import asyncio

    from perdure.cli.show import load_run

    return asyncio.run(load_run(_store(folder), ORDER))[0].status


def _store(folder: Path) -> str:
    from urllib.parse import quote

    return f"sqlite:///{quote(str(folder / 'perdure.db'))}"
